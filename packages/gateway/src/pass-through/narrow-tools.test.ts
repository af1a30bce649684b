import type { Trajectory } from '@aworld-train/core'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { post, sessionRequest } from '../testing/start-gateway.ts'

const user = { role: 'user', content: 'Gold?' } as const
const tool = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object', properties: {} } } }) as const
const named = (name: string) => ({ type: 'function', function: { name } }) as const
const among = (mode: string, ...names: string[]) => ({ type: 'allowed_tools', allowed_tools: { mode, tools: names.map(named) } })

const cases: readonly [object, readonly string[], unknown, string][] = [
  [among('auto', 'b', 'a'), ['a', 'b'], 'auto', 'temperature'],
  [among('required', 'a', 'c'), ['a', 'c'], 'required', 'processed'],
  [among('required', 'b'), ['b'], named('b'), 'processed'],
  [among('auto'), ['a', 'b', 'c'], 'none', 'temperature'],
]

test('allowed tools are the only ones that a chat engine is told of', async () => {
  await using started = await startChatGateway(() => 'Fine.')
  const session = started.gateway.open(sessionRequest())
  const tools = ['a', 'b', 'c'].map(tool)
  for (const [tool_choice, names, choice] of cases) {
    expect((await post(session.endpoint('agent'), { tools, messages: [user], tool_choice, x: 1 })).status).toBe(200)
    const { body } = started.server.calls.at(-1)!
    expect(body).toMatchObject({ messages: [user], tool_choice: choice, x: 1 })
    expect((body['tools'] as { function: { name: string } }[]).map(({ function: { name } }) => name)).toEqual(names)
  }
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns.map(({ capture }) => capture.logprobs)).toEqual(cases.map(([, , , logprobs]) => logprobs))
})

test('of a request with allowed tools, every other byte stays', async () => {
  await using started = await startChatGateway(() => 'Fine.')
  const endpoint = started.gateway.open(sessionRequest()).endpoint('agent')
  const kept = '{"type":"function", "function":{"name":"a","parameters":{"maximum":1.0}}}'
  const begin = '{ "messages":[{"role":"user","content":"\\u00fc 1.0 \\"tools\\""}], "tools": ['
  const end =
    ', "tool_choice":{"allowed_tools":{"tools":[{"function":{"name":"a"},"type":"function"}],"mode":"auto"},"type":"allowed_tools"}}'
  expect((await post(endpoint, `${begin}${JSON.stringify(tool('b'))} , ${kept}]${end}`)).status).toBe(200)
  expect(started.server.calls[0]!.raw).toContain(`${begin.slice(0, -2)}[${kept}], "tool_choice":"auto"`)
})

test('a choice that no tool can meet is refused before the engine is asked', async () => {
  await using started = await startChatGateway(() => 'Fine.')
  const endpoint = started.gateway.open(sessionRequest()).endpoint('agent')
  for (const [body, param] of [
    [{ tools: [tool('a')], tool_choice: among('auto', 'z') }, 'tool_choice'],
    [{ tool_choice: among('required', 'a') }, 'tool_choice'],
    [{ tools: [tool('a')], tool_choice: { type: 'allowed_tools' } }, 'tool_choice.allowed_tools'],
  ] as const) {
    const { status, json } = await post(endpoint, { messages: [user], ...body })
    expect(status).toBe(400)
    expect(json().error.param).toBe(param)
  }
  expect(started.server.calls).toEqual([])
})

test('Responses: allowed tools and forms reach a chat engine in its own words', async () => {
  await using started = await startChatGateway(() => '{"a": 1}')
  const session = started.gateway.open(sessionRequest())
  const { baseUrl, apiKey } = session.endpoint('agent')
  const { responses } = new OpenAI({ baseURL: baseUrl, apiKey, maxRetries: 0 })
  const flat = (name: string) => ({ type: 'function' as const, name, parameters: { type: 'object', properties: {} }, strict: false })
  const tools = ['a', 'b'].map(flat)
  const tool_choice = { type: 'allowed_tools' as const, mode: 'auto' as const, tools: [{ type: 'function', name: 'b' }] }
  await responses.create({ model: 'policy', input: 'Gold?', tools, tool_choice })
  const schema = { type: 'object', maximum: 1 }
  await responses.create({
    model: 'policy',
    input: 'Iron?',
    text: { format: { type: 'json_schema', name: 'x', schema, strict: true } },
  })
  const [first, second] = started.server.calls.map(({ body }) => body)
  expect(first).toMatchObject({ tools: [{ function: { name: 'b' } }] })
  expect(first).not.toHaveProperty('tool_choice')
  expect(first).not.toHaveProperty('response_format')
  expect(second).toMatchObject({ response_format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } } })
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns.map(({ capture }) => capture.logprobs)).toEqual(['temperature', 'processed'])
  expect(JSON.parse(turns[1]!.unusedFields!['response_format']!)).toEqual(second!['response_format'])
})
