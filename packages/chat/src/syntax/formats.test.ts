import type { Message, ToolDefinition } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import { type FormatName, formatFixtures, formatNames, writeFormat } from '../format-fixtures.test-support.ts'
import { loadChatModel } from '../load-chat-model.ts'
import type { ChatModel } from '../types.ts'

const rows: Readonly<Record<FormatName, string | null>> = {
  'qwen2.5': 'tagged-json',
  qwen3: 'tagged-json',
  'qwen3-coder': 'xml-parameters',
  'llama-3': 'bare-json',
  hermes: 'tagged-json',
  'mistral-v3': 'mistral-list',
  'mistral-v7': 'mistral-list',
  'mistral-v11': 'mistral-args',
  'mistral-v13': 'mistral-args',
  'deepseek-r1': 'deepseek-fenced',
  'deepseek-v3.1': 'deepseek-plain',
  'gemma-3': null,
  'gemma-4': 'gemma-call',
  'gpt-oss': 'harmony',
  'glm-4.5': 'key-value-tags',
  'kimi-k2': 'kimi',
}

/** A model's continuation after an opened call, if that is more than the arguments. */
const rests: Readonly<Record<string, string>> = {
  'tagged-json': ' {"text": "x y"}}\n</tool_call>',
  'xml-parameters': '\n<parameter=text>\nx y\n</parameter>\n</function>\n</tool_call>',
  'key-value-tags': '<arg_key>text</arg_key>\n<arg_value>x y</arg_value>\n</tool_call>',
  'bare-json': ' {"text": "x y"}}',
  'mistral-list': ' {"text": "x y"}, "id": "abcdef012"}]',
  'deepseek-fenced': '{"text": "x y"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  'deepseek-plain': '{"text": "x y"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  kimi: '0<|tool_call_argument_begin|>{"text": "x y"}<|tool_call_end|><|tool_calls_section_end|>',
  'gemma-call': 'text:<|"|>x y<|"|>}<tool_call|>',
}

async function modelOf(name: FormatName): Promise<ChatModel> {
  await using folder = await writeFormat(name)
  return await loadChatModel({ directory: folder.directory, stopTokenIds: folder.stopTokenIds })
}

const args = {
  text: 'one "two"\nthree </b> ü漢🙂',
  number: 1.5,
  whole: 7,
  digits: '007',
  yes: true,
  list: [1, 'x', { a: false }],
  empty: '',
}
const tool: ToolDefinition = {
  name: 'look_up',
  description: 'Looks something up.',
  parameters: {
    type: 'object',
    properties: {
      text: { type: 'string' },
      number: { type: 'number' },
      whole: { type: 'integer' },
      digits: { type: 'string' },
      yes: { type: 'boolean' },
      list: { type: 'array' },
      empty: { type: 'string' },
    },
  },
}
const question: Message = { role: 'user', content: 'What is it?' }
const called: Message = {
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'abcdef012', name: 'look_up', arguments: JSON.stringify(args) }],
}
const result: Message = { role: 'tool', content: 'It is.', toolCallId: 'abcdef012' }

/** Ids of the called turn as the template prints it, up to its stop token. */
function printedTurn(model: ChatModel, stops: readonly string[]): Int32Array {
  const prompt = model.decode(model.createConversation().prepare({ messages: [question], tools: [tool] }).promptTokenIds)
  const whole = model.decode(model.createConversation().prepare({ messages: [question, called, result], tools: [tool] }).promptTokenIds)
  const common = [...prompt].findIndex((character, index) => whole[index] !== character)
  const from = common < 0 ? prompt.length : prompt.slice(0, common).length
  const rest = whole.slice(from, whole.indexOf('It is.'))
  const ends = stops.map((stop) => [rest.indexOf(stop), stop] as const).filter(([at]) => at >= 0)
  const [at, stop] = ends.sort(([left], [right]) => left - right)[0]!
  return model.encode(rest.slice(0, at) + stop)
}

describe.each(formatNames)('%s', (name) => {
  test('the probe finds its row, and the row reads what the template prints', async () => {
    const model = await modelOf(name)
    expect(model.probe.syntax).toBe(rows[name])
    if (rows[name] === null) return
    const prompt = model.createConversation().prepare({ messages: [question], tools: [tool] })
    const thought = prompt.reasoningOpen ? model.encode('Let me see.</think>') : []
    const ids = Int32Array.from([...thought, ...printedTurn(model, formatFixtures[name].stops)])
    for (const size of [1, 3, 10_000]) {
      const parser = model.createCompletionParser({ tools: [tool], prompt, mintToolCallId: (index) => `id${index}` })
      for (let at = 0; at < ids.length; at += size) parser.push(ids.subarray(at, at + size))
      const { message, issues, finishReason, promptCallIds } = parser.finish({ unified: 'stop' })
      expect({ issues, finishReason }).toEqual({ issues: [], finishReason: 'tool-calls' })
      expect(message.toolCalls).toMatchObject([{ id: 'id0', name: 'look_up' }])
      expect(JSON.parse(message.toolCalls![0]!.arguments)).toEqual(args)
      expect(promptCallIds.map((id) => id !== null)).toEqual([model.probe.idsInPrompt])
    }
  })

  test('a call that the prompt opens goes on in what is sampled', async () => {
    const model = await modelOf(name)
    if (rows[name] === null) return
    const prompt = model.createConversation().prepare({ messages: [question], tools: [tool], forced: { kind: 'named', name: 'look_up' } })
    expect(model.decode(prompt.promptTokenIds).endsWith(prompt.forced)).toBe(true)
    const parser = model.createCompletionParser({ tools: [tool], prompt, mintToolCallId: (index) => `id${index}` })
    const stop = name === 'gpt-oss' ? '<|call|>' : formatFixtures[name].stops[0]
    parser.push(model.encode(`${rests[rows[name]] ?? ' {"text": "x y"}'}${stop}`))
    const { message, issues } = parser.finish({ unified: 'stop' })
    expect({ issues, calls: message.toolCalls }).toEqual({
      issues: [],
      calls: [{ id: 'id0', name: 'look_up', arguments: expect.any(String) }],
    })
    expect(JSON.parse(message.toolCalls![0]!.arguments)).toEqual({ text: 'x y' })
  })
})

test('Llama may mark its call and end it with the token for more to come', async () => {
  const model = await modelOf('llama-3')
  const prompt = model.createConversation().prepare({ messages: [question], tools: [tool] })
  const parser = model.createCompletionParser({ tools: [tool], prompt, mintToolCallId: String })
  for (const id of model.encode('<|python_tag|>{"name": "look_up", "parameters": {"text": "x"}}<|eom_id|>')) parser.push(Int32Array.of(id))
  expect(parser.finish({ unified: 'stop' })).toMatchObject({
    message: { content: null, toolCalls: [{ name: 'look_up', arguments: '{"text": "x"}' }] },
    issues: [],
  })
})
