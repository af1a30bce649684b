import type { PolicyEndpoint } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { readNamedEvents } from '../../testing/read-named-events.ts'
import { sessionRequest, startGateway } from '../../testing/start-gateway.ts'

/** Arguments that must keep their spelling: numbers, keys that look like indexes, a key twice, escapes. */
const exotic =
  '{"big": 12345678901234567890, "whole":2.0, "e": 1E5, "zero": -0, "9": 1, "1": 0.10000000000000000555, "__proto__": {"": [1.0]}, "9": 2, "s": "\\u00e9\\ud83d\\ude42"}'
const callText = `<tool_call>\n{"name": "lookup", "arguments": ${exotic}}\n</tool_call>`
const tools = '[{"name":"lookup","input_schema":{"type":"object"}}]'
const question = '{"role":"user","content":"Gold?"}'

const body = (messages: readonly string[], system = 'Look.') =>
  `{"model":"any","max_tokens":500,"system":"${system}","tools":${tools},"messages":[${messages.join(',')}]}`

const use = (id: string, input: string) =>
  `{"role":"assistant","content":[{"type":"tool_use","id":"${id}","name":"lookup","input":${input}}]}`
const result = (id: string) => `{"role":"user","content":[{"type":"tool_result","tool_use_id":"${id}","content":"79"}]}`

async function send({ baseUrl }: PolicyEndpoint, text: string): Promise<string> {
  const response = await fetch(`${baseUrl}/messages`, { method: 'POST', body: text })
  expect(response.status).toBe(200)
  return await response.text()
}

const idIn = (answer: string) => /"id":"(call_[^"]+)"/.exec(answer)![1]!

test('the input of a call reaches the client as the policy wrote it, and comes back the same', async () => {
  await using started = await startGateway({ say: [callText, 'Done.'] })
  const session = started.gateway.open(sessionRequest())
  const endpoint = session.endpoint('agent')
  const answer = await send(endpoint, body([question]))
  expect(answer).toContain(`"input":${exotic}}`)
  const id = idIn(answer)
  await send(endpoint, body([question, use(id, exotic), result(id)]))
  const [first, second] = (await session.close())[0]!.turns
  expect(first!.toolCalls[0]!.arguments).toBe(exotic)
  expect(second!.parent).toBe(0)
  expect(started.gateway.counts().tolerated).toEqual({})
})

test('a stream carries the input of a call as the policy wrote it', async () => {
  await using started = await startGateway({ say: [{ text: callText, pieceSize: 7 }] })
  const endpoint = started.gateway.open(sessionRequest()).endpoint('agent')
  const events = await readNamedEvents(endpoint, '/messages', JSON.parse(body([question])) as object)
  const pieces = events.map(({ delta }) => (delta as { partial_json?: string } | undefined)?.partial_json ?? '')
  expect(pieces.join('')).toBe(exotic)
})

test('the input of a call of another conversation is told to the policy as it was written', async () => {
  await using started = await startGateway({ say: () => 'Done.', contextLength: 50_000 })
  const session = started.gateway.open(sessionRequest())
  const endpoint = session.endpoint('agent')
  const long = `{"role":"user","content":"${'x'.repeat(20_000)}"}`
  const history = [long, use('toolu_1', exotic), result('toolu_1')]
  await send(endpoint, body(history))
  await send(endpoint, body([...history, '{"role":"assistant","content":"Done."}', question]))
  const [first, second] = (await session.close())[0]!.turns
  expect(first!.messagesDelta[2]!.toolCalls![0]!.arguments).toBe(exotic)
  expect(started.gateway.counts().tolerated).toEqual({})
  expect(second!.parent).toBe(0)
  expect(started.chat.decode(first!.promptTokenIds)).toContain(
    '"arguments": {"big": 12345678901234567890, "whole": 2.0, "e": 100000.0, "zero": 0, "9": 2, "1": 0.1, "__proto__": {"": [1.0]}, "s": "é🙂"}',
  )
})

test('names of members may be written with escapes', async () => {
  await using started = await startGateway({ say: () => 'Done.' })
  const session = started.gateway.open(sessionRequest())
  const history = [question, use('toolu_1', exotic).replace('"input"', '"inp\\u0075t"'), result('toolu_1')]
  const escaped = body(history).replace('"tools":[', '"t\\u006fols":[').replace('"type":"object"', '"type":"object","minimum":2.0')
  await send(session.endpoint('agent'), escaped)
  const [turn] = (await session.close())[0]!.turns
  expect(turn!.messagesDelta[2]!.toolCalls![0]!.arguments).toBe(exotic)
  expect(started.chat.decode(turn!.promptTokenIds)).toContain('"minimum": 2.0')
})

test('a branch shows a call as the policy wrote it, though the client wrote its numbers anew', async () => {
  await using started = await startGateway({ say: [callText, 'Done.'] })
  const session = started.gateway.open(sessionRequest())
  const endpoint = session.endpoint('agent')
  const id = idIn(await send(endpoint, body([question])))
  const anew = JSON.stringify(JSON.parse(exotic))
  expect(anew).not.toContain('12345678901234567890')
  await send(endpoint, body([question, use(id, anew), result(id)], 'Look again.'))
  const [, second] = (await session.close())[0]!.turns
  expect(second!.branchReasons).toEqual(['no-match'])
  expect(second!.messagesDelta[2]!.toolCalls![0]!.arguments).toBe(exotic)
  expect(started.chat.decode(second!.promptTokenIds)).toContain('"big": 12345678901234567890, "whole": 2.0')
})
