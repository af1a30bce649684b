import { expect, test } from 'vitest'
import type { ModelCall } from '../call.ts'
import { createChatStreamDecoder, decodeChatAnswer, encodeChatCall } from './chat-completions/client/index.ts'
import { chatCompletions } from './chat-completions/index.ts'
import { createMessagesStreamDecoder, decodeMessagesAnswer, encodeMessagesCall } from './messages/client/index.ts'
import { createResponsesStreamDecoder, decodeResponsesAnswer } from './responses/client/index.ts'
import { createResponseMemory } from './responses/memory.ts'
import type { AnswerDecoder } from './server-answer.ts'

const data = (...events: readonly object[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
  id: 'c1',
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish, ...more }],
})
const invalid = (message: RegExp) => expect.objectContaining({ code: 'POLICY_RESPONSE_INVALID', message: expect.stringMatching(message) })

function caught(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return null
}

function readAll(decoder: AnswerDecoder, text: string) {
  const pieces = [...Buffer.from(text)].map((byte) => decoder.push(Uint8Array.of(byte)))
  const { piece, answer } = decoder.finish()
  return { pieces: [...pieces, piece].filter((shown) => shown !== null), answer }
}

test('a stream of Chat Completions: calls are shown when they are whole, ids and logprobs as they come', () => {
  const call = (index: number, id: string | null, name: string | null, text: string) => ({
    tool_calls: [{ index, ...(id && { id, type: 'function' }), function: { ...(name && { name }), arguments: text } }],
  })
  const logprobs = (...values: readonly number[]) => ({ logprobs: { content: values.map((logprob) => ({ token: '', logprob })) } })
  const text =
    ': waiting\n\n' +
    data(
      { ...chunk({ role: 'assistant', content: '' }), prompt_token_ids: [5, 6] },
      chunk({ reasoning: 'hm' }, null, { token_ids: [1], ...logprobs(-0.5) }),
      chunk({ content: 'a' }),
      chunk(call(0, 'x', 'f', '')),
      chunk(call(0, null, null, '{"a":')),
      chunk(call(0, null, null, '1}')),
      chunk(call(1, 'y', 'g', '{}')),
      chunk({}, 'tool_calls', { token_ids: [2, 3], ...logprobs(-0.25, -1) }),
      { id: 'c1', choices: [], usage: { prompt_tokens: 2, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 1 } } },
    ) +
    'data: [DONE]\n\n'
  const { pieces, answer } = readAll(createChatStreamDecoder(), text)
  expect(pieces.flatMap(({ deltas }) => deltas)).toEqual([
    { type: 'reasoning', text: 'hm' },
    { type: 'content', text: 'a' },
    { type: 'tool-call', index: 0, call: { id: 'x', name: 'f', arguments: '{"a":1}' } },
    { type: 'tool-call', index: 1, call: { id: 'y', name: 'g', arguments: '{}' } },
  ])
  expect(pieces.flatMap(({ tokenIds }) => Array.from(tokenIds))).toEqual([1, 2, 3])
  expect(answer).toMatchObject({
    id: 'c1',
    model: 'm',
    promptTokenIds: Int32Array.of(5, 6),
    completion: {
      finishReason: { unified: 'tool-calls', raw: 'tool_calls' },
      logprobs: Float32Array.of(-0.5, -0.25, -1),
      usage: { promptTokens: 2, completionTokens: 3, cachedTokens: 1 },
    },
  })
})

test('streams that are none end in an error of the catalogue', () => {
  const bad: readonly (readonly [string, RegExp])[] = [
    ['', /ended before its finish reason/],
    ['data: [DONE]\n\n', /ended before its finish reason/],
    [data(chunk({ content: 'half' })), /ended before its finish reason/],
    ['data: {"choices"\n\n', /cannot be read/],
    ['data: 5\n\n', /not an object/],
    [data({ error: { message: 'out of memory' } }), /is an error: out of memory/],
    [data({ error: 'plain' }), /is an error: "plain"/],
    [data(chunk({ tool_calls: [{ index: 3, function: {} }] })), /part of call 3, but 0 calls have begun/],
    [data(chunk({ tool_calls: [{ index: -1 }] })), /part of call -1/],
  ]
  for (const [text, message] of bad) {
    expect([text, caught(() => readAll(createChatStreamDecoder(), text))]).toEqual([text, invalid(message)])
  }
  const strange = data(
    { choices: null },
    { choices: [null] },
    { choices: [{ delta: null }] },
    chunk({ content: 7, tool_calls: {} }),
    chunk({}, 'weird'),
  )
  const { answer } = readAll(createChatStreamDecoder(), strange)
  expect(answer.completion).toMatchObject({ message: { content: null }, finishReason: { unified: 'stop', raw: 'weird' } })

  const claude: readonly (readonly [object[], RegExp])[] = [
    [[], /ended before its stop reason/],
    [
      [
        { type: 'message_start', message: {} },
        { type: 'content_block_delta', index: 0, delta: { text: 'a' } },
      ],
      /ended before/,
    ],
    [[{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }], /is an error: Overloaded/],
  ]
  for (const [events, message] of claude) {
    expect(caught(() => readAll(createMessagesStreamDecoder(), data(...events)))).toEqual(invalid(message))
  }
})

test('a stream of Responses that is none ends in an error of the catalogue', () => {
  const bad: readonly (readonly [object[], RegExp])[] = [
    [[{ type: 'response.created', response: {} }], /ended before its last event/],
    [[{ type: 'error', message: 'Overloaded' }], /is an error: Overloaded/],
    [[{ type: 'response.failed', response: { error: { code: 'x', message: 'No room' } } }], /failed: No room/],
    [[{ type: 'response.completed', response: {} }], /cannot be read/],
  ]
  for (const [events, message] of bad) {
    expect(caught(() => readAll(createResponsesStreamDecoder(), data(...events)))).toEqual(invalid(message))
  }
  for (const text of ['', 'null', '{}', '{"output":[1]}']) {
    expect([text, caught(() => decodeResponsesAnswer(text))]).toEqual([text, invalid(/cannot be read/)])
  }
  const output = [{ type: 'web_search_call' }, { type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] }]
  expect(decodeResponsesAnswer(JSON.stringify({ output })).completion.message).toEqual({ role: 'assistant', content: 'No.' })
})

test('whole answers that are none end in an error of the catalogue', () => {
  for (const text of [
    '',
    'null',
    '[]',
    '{}',
    '{"choices":[]}',
    '{"choices":[{"message":null}]}',
    '{"choices":[{"message":{"tool_calls":[1]}}]}',
    '<html>',
  ]) {
    expect([text, caught(() => decodeChatAnswer(text))]).toEqual([text, invalid(/cannot be read/)])
  }
  for (const text of ['', 'null', '{"content":"a"}', '{"content":[1]}']) {
    expect([text, caught(() => decodeMessagesAnswer(text))]).toEqual([text, invalid(/cannot be read/)])
  }
})

const call = (body: object): ModelCall => chatCompletions.decode(body, JSON.stringify(body), createResponseMemory())
const tools = ['f', 'g'].map((name) => ({ type: 'function', function: { name, description: 'D', parameters: { type: 'object', x: 1 } } }))

test('a call is written as Chat Completions with everything that it asks', () => {
  const body = {
    messages: [
      { role: 'developer', content: 'S' },
      { role: 'user', content: 'a', name: 'Ada' },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'hm',
        tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', content: '2', tool_call_id: '1' },
    ],
    tools,
    tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] } },
    parallel_tool_calls: false,
    stop: ['END'],
    temperature: 0.5,
    top_p: 0.9,
    seed: 7,
  }
  const options = { model: 'other', maxTokens: 5 }
  // Not every server knows `allowed_tools`, so only the allowed tools are sent.
  const { tool_choice: _choice, ...kept } = body
  expect(JSON.parse(encodeChatCall(call(body), options))).toEqual({ ...kept, tools: tools.slice(0, 1), model: 'other', max_tokens: 5 })
  const bare = JSON.parse(encodeChatCall(call({ ...body, stream: true }), { model: 'other', agentSampling: false }))
  expect(bare).toMatchObject({ stream: true, stream_options: { include_usage: true } })
  for (const name of ['temperature', 'top_p', 'seed', 'max_tokens']) expect(bare).not.toHaveProperty(name)
})

test('a form is written in the words of the other API, or refused where that has none', () => {
  const schema = '{"type":"object","maximum":1.0}'
  const messages = '"messages":[{"role":"user","content":"a"}]'
  const json = (format: string) => `{${messages},"response_format":${format}}`
  const read = (text: string) => chatCompletions.decode(JSON.parse(text), text, createResponseMemory())
  const schemed = read(json(`{"type":"json_schema","json_schema":{"name":"x","schema":${schema}}}`))
  const object = read(json('{"type":"json_object"}'))
  const pattern = read(`{${messages},"structured_outputs":{"regex":"a"}}`)
  expect(encodeChatCall(schemed, { model: 'other' })).toContain(
    `"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":${schema},"strict":false}}`,
  )
  expect(JSON.parse(encodeChatCall(object, { model: 'other' }))).toMatchObject({ response_format: { type: 'json_object' } })
  expect(() => encodeChatCall(pattern, { model: 'other' })).toThrow(/"structured_outputs" asks for a form \(regex\)/)
  const claude = { model: 'other', maxTokens: 5 }
  expect(JSON.parse(encodeMessagesCall(schemed, claude))).toMatchObject({
    output_config: { format: { type: 'json_schema', schema: JSON.parse(schema) } },
  })
  for (const refused of [object, pattern]) expect(() => encodeMessagesCall(refused, claude)).toThrow(/that the model's API does not have/)
  const forced = read(`{${messages},"tools":${JSON.stringify(tools)},"tool_choice":"required","response_format":{"type":"json_object"}}`)
  expect(JSON.parse(encodeChatCall(forced, { model: 'other' }))).not.toHaveProperty('response_format')
})

test('a call is written as Messages: instructions apart, turns in alternation', () => {
  const body = {
    messages: [
      { role: 'system', content: 'S' },
      { role: 'user', content: 'a' },
      { role: 'user', content: 'b' },
      {
        role: 'assistant',
        content: 'c',
        reasoning_content: 'hm',
        tool_calls: [
          { id: '1', function: { name: 'f', arguments: '{"x":1}' } },
          { id: '2', function: { name: 'g' } },
        ],
      },
      { role: 'tool', content: '3', tool_call_id: '1' },
      { role: 'tool', content: '4', tool_call_id: '2' },
      { role: 'user', content: 'd' },
      { role: 'developer', content: 'T' },
    ],
    tools: tools.slice(0, 1),
    tool_choice: 'required',
    parallel_tool_calls: false,
    stop: 'END',
    top_k: 5,
  }
  expect(JSON.parse(encodeMessagesCall(call(body), { model: 'claude', maxTokens: 9 }))).toEqual({
    model: 'claude',
    max_tokens: 9,
    system: [
      { type: 'text', text: 'S' },
      { type: 'text', text: 'T' },
    ],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'c' },
          { type: 'tool_use', id: '1', name: 'f', input: { x: 1 } },
          { type: 'tool_use', id: '2', name: 'g', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: '1', content: '3' },
          { type: 'tool_result', tool_use_id: '2', content: '4' },
          { type: 'text', text: 'd' },
        ],
      },
    ],
    stop_sequences: ['END'],
    top_k: 5,
    tools: [{ name: 'f', description: 'D', input_schema: { type: 'object', x: 1 } }],
    tool_choice: { type: 'any', disable_parallel_tool_use: true },
  })
})

test('an answer of Messages, whole and streamed', () => {
  const usage = { input_tokens: 5, cache_read_input_tokens: 3, cache_creation_input_tokens: 2, output_tokens: 4 }
  const content = [
    { type: 'thinking', thinking: 'hm', signature: 's' },
    { type: 'server_tool_use', id: 'z' },
    { type: 'text', text: 'a' },
    { type: 'tool_use', id: '1', name: 'f', input: { x: 1 } },
  ]
  const whole = decodeMessagesAnswer(
    JSON.stringify({ id: 'm1', model: 'claude', content, stop_reason: 'tool_use', stop_sequence: null, usage }),
  )
  const events = [
    { type: 'message_start', message: { id: 'm1', model: 'claude', usage: { ...usage, output_tokens: 1 } } },
    { type: 'ping' },
    ...content.flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: block.type === 'tool_use' ? { ...block, input: {} } : { type: block.type } },
      ...(block.type === 'tool_use'
        ? ['{"x"', ':1}'].map((partial_json) => ({ type: 'content_block_delta', index, delta: { partial_json } }))
        : []),
      { type: 'content_block_delta', index, delta: { text: block.text, thinking: block.thinking } },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 4 } },
    { type: 'message_stop' },
  ]
  const { answer, pieces } = readAll(createMessagesStreamDecoder(), data(...events))
  expect(answer).toEqual(whole)
  expect(whole.completion).toMatchObject({
    message: { role: 'assistant', content: 'a', reasoning: 'hm', toolCalls: [{ id: '1', name: 'f', arguments: '{"x":1}' }] },
    finishReason: { unified: 'tool-calls', raw: 'tool_use' },
    usage: { promptTokens: 10, completionTokens: 4, cachedTokens: 3 },
  })
  expect(pieces.flatMap(({ deltas }) => deltas.map(({ type }) => type))).toEqual(['reasoning', 'content', 'tool-call'])
})

test('numbers and keys keep their spelling on the way to a Messages server and back', () => {
  const exotic = '{"n": 12345678901234567890, "x":2.0, "9": 1e400, "1": [-0]}'
  const text = `{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":${JSON.stringify(exotic)}}}]},{"role":"tool","tool_call_id":"1","content":"2"}],"tools":[{"type":"function","function":{"name":"f","parameters":${exotic}}},{"type":"function","function":{"name":"g","parameters":{"type":"object","x":1.0}}}],"response_format":{"type":"json_schema","json_schema":{"schema":${exotic}}}}`
  const written = encodeMessagesCall(chatCompletions.decode(JSON.parse(text), text, createResponseMemory()), { model: 'm', maxTokens: 5 })
  expect(written).toContain(`"input":${exotic}`)
  expect(written).toContain(`"input_schema":{"type":"object",${exotic.slice(1)}}`)
  expect(written).toContain('"input_schema":{"type":"object","x":1.0}')
  expect(written).toContain(`"schema":${exotic}`)
  const answer = `{"content":[{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"f","input":${exotic}},{"type":"tool_use","id":"2","name":"f"}]}`
  expect(decodeMessagesAnswer(answer).completion.message.toolCalls).toEqual([
    { id: '1', name: 'f', arguments: exotic },
    { id: '2', name: 'f', arguments: '{}' },
  ])
})
