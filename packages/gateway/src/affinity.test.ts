import type { ChatCall } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { createGateway } from './gateway.ts'
import { startChatServer } from './testing/chat-server.ts'
import { httpChatEngine } from './testing/http-chat-engine.ts'
import { post, sessionRequest, startGateway } from './testing/start-gateway.ts'

const user = (content: string) => ({ role: 'user', content })
/** Two turns of one conversation, then the first of another. */
const conversations = [
  [{ role: 'system', content: 'Be kind.' }, user('Gold?')],
  [{ role: 'system', content: 'Be kind.' }, user('Gold?'), { role: 'assistant', content: 'Au' }, user('Iron?')],
  [{ role: 'system', content: 'Be kind.' }, user('Lead?')],
]

/** Whether the first call stayed with the second, and with the third. */
const together = ([first, second, third]: readonly string[]) => [first === second, first === third]

test('in a session that many share, a conversation stays with its server, and others go where there is room', async () => {
  await using started = await startGateway({ say: () => 'Au' })
  const server = await startChatServer(() => 'Au')
  const engine = httpChatEngine(server.url)
  const passed: string[] = []
  const send = engine.send
  const noting = {
    ...engine,
    send(call: ChatCall, ...rest: [Parameters<typeof send>[1], AbortSignal]) {
      passed.push(call.affinity)
      return send(call, ...rest)
    },
  }
  const gateway = await createGateway({ models: { policy: { kind: 'chat', engine: noting } }, seed: 1 })
  try {
    const affinities = (from: number) => started.engine.requests.slice(from).map(({ affinity }) => affinity)
    for (const [rollout, limits, expected] of [
      ['shared', { maxKeptTurns: 100 }, [true, false]],
      ['own', {}, [true, true]],
    ] as const) {
      const [seen, before] = [started.engine.requests.length, passed.length]
      for (const at of [started.gateway, gateway]) {
        const session = at.open(sessionRequest({ rollout, ...limits }))
        for (const messages of conversations) expect((await post(session.endpoint('agent'), { messages })).status).toBe(200)
      }
      expect(together(affinities(seen))).toEqual(expected)
      expect(together(passed.slice(before))).toEqual(expected)
    }
  } finally {
    await gateway.close()
    await engine.close()
    await server[Symbol.asyncDispose]()
  }
})
