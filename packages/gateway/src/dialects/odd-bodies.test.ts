import fc from 'fast-check'
import { expect, test } from 'vitest'
import { modelCalls } from '../testing/arbitrary-call.ts'
import { oddJson, withOddJson } from '../testing/describe-dialect.ts'
import { chatClient, messagesClient } from '../testing/dialect-client.ts'
import { responsesClient } from '../testing/responses-client.ts'
import { lookupCall, sessionRequest, startGateway } from '../testing/start-gateway.ts'

const clients = { '/chat/completions': chatClient, '/responses': responsesClient, '/messages': messagesClient }

for (const [path, client] of Object.entries(clients)) {
  test(`${path}: no body makes the gateway fail, and every turn that was sampled is whole`, async () => {
    await using started = await startGateway({ contextLength: 1 << 20, say: (_, call) => (call % 3 === 0 ? lookupCall('gold') : 'Fine.') })
    const session = started.gateway.open(sessionRequest())
    const { baseUrl } = session.endpoint('agent')
    let served = 0
    await fc.assert(
      fc.asyncProperty(modelCalls, fc.array(fc.nat(50), { minLength: 1, maxLength: 6 }), fc.option(oddJson), async (call, at, json) => {
        const body = client.writeCall(call)
        const sent = json === null ? JSON.stringify(body) : withOddJson(body, at, json)
        const response = await fetch(baseUrl + path, { method: 'POST', body: sent })
        const text = await response.text()
        if (response.ok) served++
        expect([response.status < 500, sent, text]).toEqual([true, sent, text])
      }),
      { numRuns: 30 },
    )
    const { turns } = (await session.close())[0]!
    expect(turns.length).toBe(served)
    expect(turns.reduce((sum, turn) => sum + turn.completionTokenIds.length, 0)).toBe(started.engine.sampledTokens())
    expect(session.failure()).toBeNull()
  })
}
