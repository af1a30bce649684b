import type OpenAI from 'openai'
import { expect, test } from 'vitest'
import { lookupCall, openaiClient, sessionRequest, startGateway } from '../../testing/start-gateway.ts'

type Tool = OpenAI.Responses.FunctionTool
type Item = OpenAI.Responses.ResponseInputItem

const script = [`Let me look.\n${lookupCall('gold')}`, `${lookupCall('iron')}\n${lookupCall('tin')}`, 'Gold is 79 and iron is 26.']
const results: Readonly<Record<string, string>> = { gold: '79', iron: '26', tin: '50' }

const lookup: Tool = {
  type: 'function',
  name: 'lookup',
  description: 'Looks up an element.',
  parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  strict: null,
}

function answerCalls(response: OpenAI.Responses.Response): Item[] {
  return response.output.flatMap((item): Item[] => {
    if (item.type !== 'function_call') return []
    const { name } = JSON.parse(item.arguments) as { name: string }
    return [{ type: 'function_call_output', call_id: item.call_id, output: results[name]! }]
  })
}

/** The loop every agent runs: with the whole history, or with the id of the answer before. */
async function runLoop(client: OpenAI, how: { readonly stream: boolean; readonly chain: boolean }): Promise<string> {
  let input: Item[] = [{ role: 'user', content: 'Gold and iron?' }]
  let previous: string | undefined
  for (let turn = 0; turn < 5; turn++) {
    const request = { model: 'any', instructions: 'Answer with the tools.', input, tools: [lookup], temperature: 0.1 }
    const body = previous === undefined ? request : { ...request, previous_response_id: previous }
    const response = how.stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body)
    expect(response.status).toBe('completed')
    expect(response.usage?.total_tokens).toBeGreaterThan(0)
    const outputs = answerCalls(response)
    if (outputs.length === 0) return response.output_text
    if (how.chain) previous = response.id
    input = how.chain ? outputs : [...input, ...(response.output as Item[]), ...outputs]
  }
  throw new Error('the loop did not end')
}

for (const stream of [false, true]) {
  for (const chain of [false, true]) {
    test(`two tool turns continue as sampled (${stream ? 'streamed' : 'whole'}, ${chain ? 'by id' : 'by history'})`, async () => {
      await using started = await startGateway({ say: script })
      const session = started.gateway.open(sessionRequest())
      expect(await runLoop(openaiClient(session.endpoint('agent')), { stream, chain })).toBe('Gold is 79 and iron is 26.')
      const turns = (await session.close())[0]!.turns
      expect(turns.map(({ parent }) => parent)).toEqual([null, 0, 1])
      expect(turns.map(({ finishReason }) => finishReason.unified)).toEqual(['tool-calls', 'tool-calls', 'stop'])
      expect(turns.map(({ delivered }) => delivered)).toEqual(['delivered', 'delivered', 'delivered'])
      expect(turns[1]!.toolCalls.map(({ arguments: text }) => text)).toEqual(['{"name": "iron"}', '{"name": "tin"}'])
      expect(started.gateway.counts().tolerated).toEqual({})
    })
  }
}
