import { expect, test } from 'vitest'
import { lookupCall, sessionRequest, startGateway } from '../../testing/start-gateway.ts'

const lookup = { name: 'lookup', description: 'Looks up.', input_schema: { type: 'object', properties: { ratio: { const: 1.0 } } } }
const create = {
  max_tokens: 99,
  system: 'Be brief.',
  tools: [lookup],
  messages: [{ role: 'user', content: 'Gold?' }],
  thread: { type: 'create' },
}

async function ask(baseUrl: string, body: object) {
  const response = await fetch(`${baseUrl}/messages`, { method: 'POST', body: JSON.stringify({ model: 'any', ...body }) })
  return { status: response.status, body: (await response.json()) as Record<string, never> }
}

test.each([false, true])('a thread goes on from its last answer with the new messages only (stream %s)', async (stream) => {
  await using started = await startGateway({ say: [lookupCall('gold'), 'Gold is 79.', 'Bye.'] })
  const session = started.gateway.open(sessionRequest())
  const { baseUrl } = session.endpoint('agent')
  const send = async (body: object): Promise<string> => {
    const response = await fetch(`${baseUrl}/messages`, { method: 'POST', body: JSON.stringify({ model: 'any', stream, ...body }) })
    return /"id":"(msg_[^"]+)"/.exec(await response.text())![1]!
  }
  const first = await send(create)
  const call = session.trajectories()[0]!.turns[0]!.toolCalls[0]!
  const result = { type: 'tool_result', tool_use_id: call.id, content: '79' }
  const next = { max_tokens: 99, messages: [{ role: 'user', content: [result] }], thread: { type: 'continue', previous_message_id: first } }
  const second = await send(next)
  await send({ max_tokens: 99, messages: [{ role: 'user', content: 'Bye.' }], thread: { type: 'continue', previous_message_id: second } })
  const [trajectory] = await session.close()
  expect(trajectory!.turns.map(({ parent }) => parent)).toEqual([null, 0, 1])
  expect(started.gateway.counts()).toMatchObject({ calls: 3, continuations: 2, ignored: {} })
  expect(trajectory!.turns[1]!.messagesDelta.map(({ role, content }) => [role, content])).toEqual([['tool', '79']])
})

test('an answer of an earlier place in a thread can be continued twice', async () => {
  await using started = await startGateway({ say: ['One.', 'Two.', 'Three.'] })
  const session = started.gateway.open(sessionRequest())
  const { baseUrl } = session.endpoint('agent')
  const { id } = (await ask(baseUrl, create)).body
  for (const content of ['And?', 'Or?'])
    await ask(baseUrl, { messages: [{ role: 'user', content }], thread: { type: 'continue', previous_message_id: id } })
  const [trajectory] = await session.close()
  expect(trajectory!.turns.map(({ parent }) => parent)).toEqual([null, 0, 0])
})

test('a thread that is not kept is refused in the words that clients recover from', async () => {
  await using started = await startGateway({ say: ['One.'] })
  const agents = ['agent', 'other'].map((name) => ({ name, trainable: true }))
  const session = started.gateway.open(sessionRequest({ agents }))
  const { id } = (await ask(session.endpoint('agent').baseUrl, create)).body
  const next = { messages: [{ role: 'user', content: 'And?' }], thread: { type: 'continue', previous_message_id: id } }
  const { status, body } = await ask(session.endpoint('other').baseUrl, next)
  expect(status).toBe(404)
  expect(body).toMatchObject({ type: 'error', error: { type: 'not_found_error', details: { error_code: 'thread_not_found' } } })
})

test.each([
  ['system', { system: 'Be long.' }],
  ['tools', { tools: [lookup] }],
  ['thread.type', { thread: { type: 'fork' } }],
  ['thread', { thread: 'create' }],
])('%s is refused where it cannot be served', async (param, change) => {
  await using started = await startGateway({ say: ['One.'] })
  const session = started.gateway.open(sessionRequest())
  const { baseUrl } = session.endpoint('agent')
  const { id } = (await ask(baseUrl, create)).body
  const next = { messages: [{ role: 'user', content: 'And?' }], thread: { type: 'continue', previous_message_id: id }, ...change }
  const { status, body } = await ask(baseUrl, next)
  expect(status).toBe(400)
  expect(body).toMatchObject({ error: { type: 'invalid_request_error', param } })
})
