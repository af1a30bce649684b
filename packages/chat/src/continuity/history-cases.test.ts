import type { Message, ToolDefinition } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import type { ChatModel, HistoryMode, PreparedPrompt } from '../types.ts'
import { appended, assistant, call, lookup, now, result, shape, turn, user } from './conversation.test-support.ts'

const tools = [lookup]
const end = '<|im_end|>'

/** Samples `text` through the parser, records the delivered message and returns the next prompt. */
function goOn(
  model: ChatModel,
  text: string,
  stop: readonly string[],
  after: Message,
): { first: PreparedPrompt; message: Message; second: PreparedPrompt } {
  const conversation = model.createConversation({ now })
  const first = conversation.prepare({ messages: [user('q')], tools: [] })
  const parser = model.createCompletionParser({ tools: [], prompt: first, stop, mintToolCallId: (index) => `c${index}` })
  const tokenIds = model.encode(text)
  for (const id of tokenIds) parser.push(Int32Array.of(id))
  const { message } = parser.finish({ unified: 'stop' })
  conversation.record(0, first, { tokenIds, message, truncated: true })
  return { first, message, second: conversation.prepare({ messages: [user('q'), message, after], tools: [] }) }
}

test('a stop string ending inside a token: the whole token stays in the prompt, the client sees none of it', async () => {
  const model = await shape('chat-ml')
  expect(model.encode('a\ntool').length).toBe(3)
  const { first, message, second } = goOn(model, 'a\ntool', ['to'], user('r'))
  expect(message.content?.trim()).toBe('a')
  expect(second).toMatchObject({ parent: 0, branchReasons: [] })
  const added = model.decode(second.promptTokenIds.subarray(first.promptTokenIds.length))
  expect(added).toBe(`a\ntool${end}\n<|im_start|>user\nr${end}\n<|im_start|>assistant\n`)
})

test('incomplete UTF-8 at the cut: the bytes stay in the prompt', async () => {
  const model = await shape('chat-ml')
  const whole = model.encode('ok 🙂')
  for (let length = whole.length - 3; length < whole.length; length += 1) {
    const conversation = model.createConversation({ now })
    const first = conversation.prepare({ messages: [user('q')], tools: [] })
    const tokenIds = whole.slice(0, length)
    const parser = model.createCompletionParser({ tools: [], prompt: first, mintToolCallId: (index) => `c${index}` })
    parser.push(tokenIds)
    const { message } = parser.finish({ unified: 'length' })
    conversation.record(0, first, { tokenIds, message, truncated: true })
    const second = conversation.prepare({ messages: [user('q'), message, user('r')], tools: [] })
    const added = second.promptTokenIds.subarray(first.promptTokenIds.length)
    expect([...added.subarray(0, length)]).toEqual([...tokenIds])
    expect(model.decode(added.subarray(length))).toBe(`${end}\n<|im_start|>user\nr${end}\n<|im_start|>assistant\n`)
  }
})

describe('another stop than the template’s', () => {
  const outcome: Record<HistoryMode, object> = {
    template: { parent: null, branchReasons: ['closer'] },
    loop: { parent: 0, tolerated: { closer: 1 } },
    'as-sampled': { parent: 0, tolerated: { closer: 1 } },
  }

  test.each(Object.entries(outcome))('end of message for end of turn, with history: %s', async (history, expected) => {
    const model = await shape('header', history as HistoryMode)
    const conversation = model.createConversation({ now })
    const message = assistant(null, { toolCalls: [call('c1')] })
    const first = turn(model, conversation, 0, [user('q')], { text: 'x<|eom|>', message, tools })
    const second = conversation.prepare({ messages: [user('q'), message, result('c1', '26')], tools })
    expect(second).toMatchObject(expected)
    if (second.parent !== 0) return
    expect(appended(model, second, first, 'x<|eom|>')).toBe('<|start|>ipython<|sep|>\n\n26<|eot|><|start|>assistant<|sep|>\n\n')
  })

  test('a user header before a tool result stands in the place of the other', async () => {
    const model = await shape('next-header', 'as-sampled')
    const conversation = model.createConversation({ now })
    const message = assistant(null, { toolCalls: [call('c1')] })
    const first = turn(model, conversation, 0, [user('q')], { text: 'x<|user|>', message, tools })
    const second = conversation.prepare({ messages: [user('q'), message, result('c1', '26')], tools })
    expect(second).toMatchObject({ parent: 0, tolerated: { closer: 1 } })
    expect(appended(model, second, first, 'x<|user|>')).toBe('\n<tool_response>\n26\n</tool_response><|assistant|>')
  })
})

test('leading spaces of what is told stay, and so do those of what was said', async () => {
  const model = await shape('chat-ml', 'template')
  const conversation = model.createConversation({ now })
  const message = assistant('  said', { toolCalls: [call('c1')] })
  const first = turn(model, conversation, 0, [user('  q')], { text: `  said${end}`, message, tools })
  expect(model.decode(first.promptTokenIds)).toContain('<|im_start|>user\n  q<|im_end|>')
  const second = conversation.prepare({ messages: [user('  q'), message, result('c1', '  26\n')], tools })
  expect(appended(model, second, first, `  said${end}`)).toBe(`\n<|im_start|>tool\n  26\n${end}\n<|im_start|>assistant\n`)
})

test('an answer that is only reasoning leaves nothing to continue where its template drops it', async () => {
  const model = await shape('think-dropping', 'as-sampled')
  const conversation = model.createConversation({ now })
  const sampled = `<think>\nhm\n</think>\n\n${end}`
  turn(model, conversation, 0, [user('q')], { text: sampled, message: assistant('', { reasoning: 'hm' }) })
  const second = conversation.prepare({ messages: [user('q'), assistant(''), user('r')], tools: [] })
  expect(second).toMatchObject({ parent: null, matched: 0, branchReasons: ['dropped:reasoning', 'no-sentinel'] })
  expect(model.decode(second.promptTokenIds)).toBe(
    `<|im_start|>user\nq${end}\n<|im_start|>assistant\n${end}\n<|im_start|>user\nr${end}\n<|im_start|>assistant\n`,
  )
})

test.each([
  ['additionalProperties: false', '{"type":"object","additionalProperties":false}', '"additionalProperties": false'],
  ['minimum: 0.0', '{"properties":{"n":{"minimum":0.0}}}', '"minimum": 0.0'],
  ['non-ASCII in a schema', '{"description":"Zürich 漢字"}', 'Zürich 漢字'],
])('%s goes on as it began', async (_, schema, printed) => {
  const model = await shape('chat-ml', 'template')
  const conversation = model.createConversation({ now })
  const toolsJson = `[{"type":"function","function":{"name":"lookup","parameters":${schema}}}]`
  const definition: ToolDefinition = { name: 'lookup', parameters: JSON.parse(schema) as Record<string, unknown> }
  const message = assistant(null, { toolCalls: [call('c1', '{"name": null, "deep": {"x": [null, 1.0]}}')] })
  const first = conversation.prepare({ messages: [user('q')], tools: [definition], toolsJson })
  expect(model.decode(first.promptTokenIds)).toContain(printed)
  conversation.record(0, first, { tokenIds: model.encode(`x${end}`), message })
  const spaced = JSON.stringify(JSON.parse(toolsJson), null, 2).replace('"minimum": 0', '"minimum": 0.0')
  const second = conversation.prepare({ messages: [user('q'), message, result('c1', '1')], tools: [definition], toolsJson: spaced })
  expect(second).toMatchObject({ parent: 0, branchReasons: [], tolerated: {} })
})

test('an edited system prompt, an added tool and an edited question each begin a branch of their own', async () => {
  const model = await shape('chat-ml', 'as-sampled')
  const system: Message = { role: 'system', content: 's' }
  const message = assistant(null, { toolCalls: [call('c1')] })
  const conversation = model.createConversation({ now })
  turn(model, conversation, 0, [system, user('q')], { text: `x${end}`, message, tools })
  const after = [message, result('c1', '26')]
  const ask = (messages: readonly Message[], offeredTools = tools) => conversation.prepare({ messages, tools: offeredTools }).branchReasons
  expect(ask([{ ...system, content: 't' }, user('q'), ...after])).toEqual(['no-match'])
  expect(ask([system, user('Q'), ...after])).toEqual(['no-match'])
  expect(ask([system, user('q'), ...after], [lookup, { ...lookup, name: 'other' }])).toEqual(['tools'])
  expect(ask([system, user('q'), ...after])).toEqual([])
})
