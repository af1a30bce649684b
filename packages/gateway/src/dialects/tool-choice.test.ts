import Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { expect, test } from 'vitest'
import { lookupCall, lookupTool, openaiClient, type Say, sessionRequest, startGateway } from '../testing/start-gateway.ts'
import { checkToolChoice } from './tool-choice.ts'

const other = { type: 'function', function: { name: 'other', parameters: { type: 'object', properties: {} } } } as const
const otherCall = '<tool_call>\n{"name": "other", "arguments": {}}\n</tool_call>'
const user = { role: 'user', content: 'Gold?' } as const

type Request = Pick<OpenAI.ChatCompletionCreateParamsNonStreaming, 'tool_choice' | 'parallel_tool_calls'>

/** One call with both tools, whole or streamed, with the turn that it leaves and the end of its prompt. */
async function ask(say: Say, request: Request, stream: boolean) {
  await using started = await startGateway({ say: [say] })
  const session = started.gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent'))
  const body = { model: 'any', messages: [user], tools: [lookupTool, other], ...request }
  const completion = stream ? await client.chat.completions.stream(body).finalChatCompletion() : await client.chat.completions.create(body)
  const [turn] = (await session.close())[0]!.turns
  return { choice: completion.choices[0]!, turn: turn!, prompt: started.chat.decode(turn!.promptTokenIds) }
}

const named = { type: 'function', function: { name: 'lookup' } } as const
const allowed: OpenAI.ChatCompletionAllowedToolChoice = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ ...named }] } }

for (const stream of [false, true]) {
  const how = stream ? 'streamed' : 'whole'

  test(`a named tool is called: the prompt opens the call, and the sampled rest is trained (${how})`, async () => {
    const rest = ' {"name": "gold"}}\n</tool_call>'
    const { choice, turn, prompt } = await ask(rest, { tool_choice: named }, stream)
    expect(prompt).toMatch(/<tool_call>\n\{"name": "lookup", "arguments":$/)
    expect(choice.finish_reason).toBe('tool_calls')
    expect(choice.message.tool_calls).toMatchObject([{ function: { name: 'lookup', arguments: '{"name": "gold"}' } }])
    expect(turn.rolloutLogprobs.length).toBe(turn.completionTokenIds.length)
  })

  test(`a required call is opened, and the policy chooses the tool (${how})`, async () => {
    const { choice, prompt } = await ask(' "other", "arguments": {}}\n</tool_call>', { tool_choice: 'required' }, stream)
    expect(prompt).toMatch(/<tool_call>\n\{"name":$/)
    expect(choice.message.tool_calls).toMatchObject([{ function: { name: 'other' } }])
  })

  test(`calls of tools that are not allowed are held back (${how})`, async () => {
    const { choice, turn } = await ask(`${otherCall}\n${lookupCall('gold')}`, { tool_choice: allowed }, stream)
    expect(choice.message.tool_calls).toMatchObject([{ function: { name: 'lookup' } }])
    expect(choice.message.tool_calls?.length).toBe(1)
    expect(turn.toolCalls.map(({ name }) => name)).toEqual(['lookup'])
    const none = await ask(otherCall, { tool_choice: allowed }, stream)
    expect(none.choice).toMatchObject({ finish_reason: 'stop', message: { content: '' } })
  })

  test(`one call at a time: the first is delivered (${how})`, async () => {
    const { choice } = await ask(`${lookupCall('gold')}\n${lookupCall('iron')}`, { parallel_tool_calls: false }, stream)
    expect(choice.message.tool_calls?.map((call) => 'function' in call && call.function.arguments)).toEqual(['{"name": "gold"}'])
  })
}

test('a turn whose second call was held back is continued as it was sampled', async () => {
  await using started = await startGateway({ say: [`${lookupCall('gold')}\n${lookupCall('iron')}`, 'Done.'] })
  const session = started.gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent'))
  const request = { model: 'any', tools: [lookupTool], parallel_tool_calls: false }
  const first = await client.chat.completions.create({ ...request, messages: [user] })
  const { message } = first.choices[0]!
  const result = { role: 'tool', tool_call_id: message.tool_calls![0]!.id, content: '79' } as const
  await client.chat.completions.create({ ...request, messages: [user, message, result] })
  const { turns } = (await session.close())[0]!
  expect(turns[1]!.parent).toBe(0)
  const sampled = [...turns[0]!.promptTokenIds, ...turns[0]!.completionTokenIds]
  expect(Array.from(turns[1]!.promptTokenIds.subarray(0, sampled.length))).toEqual(sampled)
})

test('the prompt names the same tools whatever the choice', async () => {
  const prompts: string[] = []
  for (const tool_choice of ['auto', 'none', allowed] as const) prompts.push((await ask('Fine.', { tool_choice }, false)).prompt)
  expect(new Set(prompts).size).toBe(1)
})

test('any and tool of Messages force a call as well', async () => {
  await using started = await startGateway({
    say: [' {"name": "gold"}}\n</tool_call>', ' "lookup", "arguments": {}}\n</tool_call>'],
  })
  const { baseUrl, apiKey } = started.gateway.open(sessionRequest()).endpoint('agent')
  const client = new Anthropic({ baseURL: baseUrl, apiKey, maxRetries: 0 })
  const tools = [{ name: 'lookup', input_schema: { type: 'object' as const } }]
  for (const tool_choice of [
    { type: 'tool', name: 'lookup' },
    { type: 'any', disable_parallel_tool_use: true },
  ] as const) {
    const message = await client.messages.create({ model: 'any', max_tokens: 99, messages: [user], tools, tool_choice })
    expect(message).toMatchObject({ stop_reason: 'tool_use', content: [{ type: 'tool_use', name: 'lookup' }] })
  }
})

test('a choice among tools, as a table', () => {
  const tools = ['a', 'b'].map((name) => ({ name, parameters: {} }))
  expect(checkToolChoice({ kind: 'required', allowed: ['a'] }, tools, true)).toEqual({
    kind: 'named',
    name: 'a',
    parallel: true,
    allowed: ['a'],
  })
  expect(checkToolChoice({ kind: 'required', allowed: ['a', 'b'] }, tools, true)).toMatchObject({ kind: 'required' })
  expect(checkToolChoice({ kind: 'auto', allowed: [] }, tools, true)).toEqual({ kind: 'none', parallel: true })
  expect(checkToolChoice({ kind: 'auto' }, [], false)).toEqual({ kind: 'auto', parallel: false })
  expect(() => checkToolChoice({ kind: 'named', name: 'c' }, tools, true)).toThrow(/names "c".*known are: a, b/)
  expect(() => checkToolChoice({ kind: 'required' }, [], true)).toThrow(/"tools" is empty/)
})
