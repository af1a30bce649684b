import { expect, test } from 'vitest'
import type { Dialect } from '../call.ts'
import { chatCompletions } from './chat-completions/index.ts'
import { messages } from './messages/index.ts'
import { responses } from './responses/index.ts'
import { createResponseMemory } from './responses/memory.ts'
import { sealReasoning } from './responses/reasoning.ts'

const decode = (dialect: Dialect, body: object, memory = createResponseMemory()) => dialect.decode(body, JSON.stringify(body), memory)
const user = { role: 'user', content: 'Hi.' }
const call = (id: string, name = 'f') => ({ id, name, arguments: '{}' })

test('Chat Completions: parts, refusals, developers, names and calls with plain text', () => {
  const history = [
    {
      role: 'developer',
      content: [
        { type: 'text', text: 'a', cache_control: {} },
        { type: 'input_text', text: 'b' },
      ],
    },
    { role: 'user', name: 'Ada', content: null },
    { role: 'assistant', content: null, refusal: 'No.' },
    {
      role: 'assistant',
      content: [{ type: 'refusal', refusal: 'Never.' }],
      reasoning: 'Hm.',
      tool_calls: [],
      audio: null,
      function_call: null,
    },
    {
      role: 'assistant',
      tool_calls: [
        { id: 'a', type: 'custom', custom: { name: 'shell', input: 'ls "x"' } },
        { id: 'b', function: { name: 'f' } },
      ],
    },
    { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: '1' }] },
  ]
  expect(decode(chatCompletions, { messages: history }).messages).toEqual([
    { role: 'developer', content: 'ab' },
    { role: 'user', content: '', name: 'Ada' },
    { role: 'assistant', content: 'No.' },
    { role: 'assistant', content: 'Never.', reasoning: 'Hm.' },
    {
      role: 'assistant',
      content: null,
      toolCalls: [
        { id: 'a', name: 'shell', arguments: '{"input":"ls \\"x\\""}' },
        { id: 'b', name: 'f', arguments: '' },
      ],
    },
    { role: 'tool', content: '1', toolCallId: 'a' },
  ])
})

test('Chat Completions: a tool with plain text stands among the others in its place', () => {
  const tools = [
    { type: 'custom', custom: { name: 'shell', description: 'Runs it.', format: { type: 'grammar' } } },
    { type: 'function', function: { name: 'f', parameters: { type: 'object' }, strict: true } },
  ]
  const { toolsJson, customTools, tools: decodedTools } = decode(chatCompletions, { messages: [user], tools })
  expect([...customTools]).toEqual(['shell'])
  expect(decodedTools.map(({ name }) => name)).toEqual(['shell', 'f'])
  expect(JSON.parse(toolsJson!)).toEqual([
    {
      type: 'function',
      function: {
        name: 'shell',
        description: 'Runs it.',
        parameters: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
      },
    },
    { type: 'function', function: { name: 'f', parameters: { type: 'object' }, strict: true } },
  ])
})

test('Chat Completions: the smaller of two limits counts, and options of a stream that mean nothing here are taken', () => {
  const body = { messages: [user], max_tokens: 9, max_completion_tokens: 5, modalities: ['text'], stop: ['', 'END'] }
  const read = decode(chatCompletions, { ...body, stream: true, stream_options: { include_usage: true, include_obfuscation: false } })
  expect(read).toMatchObject({ maxTokens: 5, stop: ['END'], stream: true, wants: { streamUsage: true }, ignored: [] })
  expect(() => decode(chatCompletions, { ...body, modalities: ['text', 'audio'] })).toThrow(
    /"modalities" is "audio"; the policy reads text only/,
  )
  expect(() => decode(chatCompletions, { messages: [{ role: 'assistant', audio: { id: 'x' } }] })).toThrow(/messages\[0\]\.audio/)
})

test('Responses: what an assistant wrote in one answer is one message', () => {
  const text = (value: string) => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: value, annotations: [] }] })
  const thought = (value: string) => ({ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: value }] })
  const called = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' })
  const result = (id: string) => ({ type: 'function_call_output', call_id: id, output: [{ type: 'input_text', text: '1' }] })
  const input = [
    user,
    thought('a'),
    text('b'),
    called('1'),
    called('2'),
    result('1'),
    result('2'),
    thought('c'),
    text('d'),
    text('e'),
    thought('f'),
    called('3'),
  ]
  expect(decode(responses, { input }).messages).toEqual([
    user,
    { role: 'assistant', content: 'b', reasoning: 'a', toolCalls: [call('1'), call('2')] },
    { role: 'tool', content: '1', toolCallId: '1' },
    { role: 'tool', content: '1', toolCallId: '2' },
    { role: 'assistant', content: 'd', reasoning: 'c' },
    { role: 'assistant', content: 'e' },
    { role: 'assistant', content: null, reasoning: 'f', toolCalls: [call('3')] },
  ])
})

test('Responses: text behind a call belongs to the same answer', () => {
  const input = [
    user,
    { type: 'function_call', call_id: '1', name: 'f', arguments: '{}' },
    { role: 'assistant', content: 'a' },
    { role: 'assistant', content: 'b' },
  ]
  expect(decode(responses, { input }).messages).toEqual([user, { role: 'assistant', content: 'ab', toolCalls: [call('1')] }])
})

test('Responses: items of one answer of ours stay together, whatever their order', () => {
  const id = (type: string, answer: number, index: number) => `${type}_0123456789ab-${answer}_${index}`
  const input = [
    { type: 'message', id: id('msg', 1, 0), role: 'assistant', content: [{ type: 'output_text', text: 'a' }] },
    { type: 'reasoning', id: id('rs', 1, 1), summary: [], content: [{ type: 'reasoning_text', text: 'b' }] },
    { type: 'message', id: id('msg', 1, 2), role: 'assistant', content: [{ type: 'output_text', text: 'c' }] },
    { type: 'message', id: id('msg', 2, 0), role: 'assistant', content: [{ type: 'output_text', text: 'd' }] },
  ]
  expect(decode(responses, { input }).messages).toEqual([
    { role: 'assistant', content: 'ac', reasoning: 'b' },
    { role: 'assistant', content: 'd' },
  ])
})

test('Responses: reasoning is read from its text, from what was sealed in it, and from its summary', () => {
  const summary = [{ type: 'summary_text', text: 'short' }]
  const forms = [
    [{ summary, content: [{ type: 'reasoning_text', text: 'long' }], encrypted_content: sealReasoning('sealed') }, 'long'],
    [{ summary, encrypted_content: sealReasoning('sealéd 🙂') }, 'sealéd 🙂'],
    [{ summary, encrypted_content: 'of somebody else' }, 'short'],
    [{ summary: [], encrypted_content: null }, undefined],
  ] as const
  for (const [form, expected] of forms) {
    const [message] = decode(responses, { input: [{ type: 'reasoning', id: 'rs_1', ...form }, user] }).messages
    expect(message?.reasoning).toBe(expected)
  }
})

test('Responses: an item without a type is a message, or refers to one', () => {
  expect(decode(responses, { input: [{ role: 'system', content: 'S' }, user] }).messages).toEqual([{ role: 'system', content: 'S' }, user])
  for (const type of ['constructor', 'compaction', 'input_image']) {
    expect(() => decode(responses, { input: [{ type }] })).toThrow(new RegExp(`"input\\[0\\]\\.type" is "${type}"`))
  }
})

test('Responses: reasoning is shown as the request asks', () => {
  const completion = {
    message: { role: 'assistant' as const, content: 'b', reasoning: 'a' },
    finishReason: { unified: 'stop' as const, raw: 'stop' },
    tokenIds: new Int32Array(0),
    logprobs: new Float32Array(0),
    usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0 },
  }
  const shown = (body: object) => {
    const head = {
      id: 'ab-1',
      created: 1,
      model: 'm',
      promptTokenIds: new Int32Array(0),
      tokenText: String,
      memory: createResponseMemory(),
    }
    const call = decode(responses, { input: 'Hi.', ...body })
    const [reasoning] = JSON.parse(responses.encode({ ...head, call }, completion)).output
    const encoder = responses.createStream({ ...head, call })
    const deltas = [
      { type: 'reasoning' as const, text: 'a' },
      { type: 'content' as const, text: 'b' },
    ]
    const stream = encoder.start() + encoder.piece({ deltas, tokenIds: [], logprobs: [] }) + encoder.end(completion)
    const final = stream.split('data: ').at(-1) ?? ''
    expect(JSON.parse(final).response.output[0]).toEqual(reasoning)
    return { reasoning, types: [...stream.matchAll(/^event: response\.(?<type>reasoning\S*)/gm)].map(({ groups }) => groups?.['type']) }
  }
  const plain = shown({})
  expect(plain.reasoning).toMatchObject({ summary: [], content: [{ type: 'reasoning_text', text: 'a' }] })
  expect(plain.reasoning).not.toHaveProperty('encrypted_content')
  expect(plain.types).toEqual(['reasoning_text.delta', 'reasoning_text.done'])
  const summarised = shown({ reasoning: { effort: 'low', summary: 'auto' }, include: ['reasoning.encrypted_content'] })
  expect(summarised.reasoning).toMatchObject({ summary: [{ type: 'summary_text', text: 'a' }], encrypted_content: sealReasoning('a') })
  expect(summarised.reasoning).not.toHaveProperty('content')
  expect(summarised.types).toEqual([
    'reasoning_summary_part.added',
    'reasoning_summary_text.delta',
    'reasoning_summary_text.done',
    'reasoning_summary_part.done',
  ])
})

test('Messages: blocks of a history in their order', () => {
  const history = [
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
        { type: 'thinking', thinking: 'hm', signature: 's' },
        { type: 'redacted_thinking', data: 'x' },
        { type: 'text', text: 'c' },
        { type: 'tool_use', id: '1', name: 'f', input: { x: 1 } },
        { type: 'text', text: 'd' },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: '1', content: [{ type: 'text', text: 'e' }], cache_control: {} },
        { type: 'text', text: 'f' },
        { type: 'tool_result', tool_use_id: '2' },
      ],
    },
    { role: 'system', content: 'late' },
    { role: 'user', content: [] },
    { role: 'assistant', content: '' },
  ]
  const system = [
    { type: 'text', text: 'S' },
    { type: 'text', text: 'T', cache_control: { type: 'ephemeral' } },
  ]
  const read = decode(messages, { system, messages: history, max_tokens: 1 })
  expect(read.messages).toEqual([
    { role: 'system', content: 'ST' },
    { role: 'user', content: 'ab' },
    { role: 'assistant', content: 'cd', reasoning: 'hm', toolCalls: [{ id: '1', name: 'f', arguments: '{"x":1}' }] },
    { role: 'tool', content: 'e', toolCallId: '1' },
    { role: 'user', content: 'f' },
    { role: 'tool', content: '', toolCallId: '2' },
    { role: 'system', content: 'late' },
    { role: 'user', content: '' },
    { role: 'assistant', content: null },
  ])
  expect(read.oddities).toEqual(['result-without-call'])
  const image = [{ type: 'tool_result', tool_use_id: '1', content: [{ type: 'image' }] }]
  expect(() => decode(messages, { messages: [{ role: 'user', content: image }] })).toThrow(
    /messages\[0\]\.content\[0\]\.content\[0\]\.type/,
  )
})

test('Messages: choices, and what is refused of tools', () => {
  const tools = [{ name: 'f', type: 'custom', input_schema: { type: 'object' } }]
  const choice = (tool_choice: object | null) => decode(messages, { messages: [user], tools, tool_choice }).toolChoice
  expect(choice(null)).toEqual({ kind: 'auto', parallel: true })
  expect(choice({ type: 'auto', disable_parallel_tool_use: true })).toEqual({ kind: 'auto', parallel: false })
  expect(choice({ type: 'any' })).toEqual({ kind: 'required', parallel: true })
  expect(choice({ type: 'tool', name: 'f', disable_parallel_tool_use: true })).toEqual({ kind: 'named', name: 'f', parallel: false })
  expect(choice({ type: 'none' })).toEqual({ kind: 'none', parallel: true })
})
