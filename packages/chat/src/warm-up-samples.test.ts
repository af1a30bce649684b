import type { Message, TrainingSample } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import { assistant, call, chatMlLike, lookup, result, shape, user } from './continuity/conversation.test-support.ts'
import { type FormatName, formatNames, writeFormat } from './format-fixtures.test-support.ts'
import { loadChatModel } from './load-chat-model.ts'
import type { ChatModel } from './types.ts'
import { toWarmUpSamples } from './warm-up-samples.ts'

const tools = [{ ...lookup, description: 'Looks an element up.' }]
const calling = assistant(null, { toolCalls: [call('c1')] })
const messages: readonly Message[] = [user('What is the number of iron?'), calling, result('c1', '26'), assistant('It is 26.')]

const learned = ({ tokenIds, lossMask }: TrainingSample) => tokenIds.filter((_, index) => lossMask[index] === 1)

test('a conversation is one row: the prompts of the gateway, and a loss mask on what the assistant says, its stop token included', async () => {
  const chat = await shape('chat-ml')
  const rows = toWarmUpSamples({ chat, messages, tools, id: 'iron' })
  expect(rows).toHaveLength(1)
  const [row] = rows as [TrainingSample]
  expect(chat.decode(learned(row))).toBe(
    '<tool_call>\n{"name": "lookup", "arguments": {"name": "iron"}}\n</tool_call><|im_end|>It is 26.<|im_end|>',
  )
  // A policy that gave these answers would have got these ids: the first prompt, then its continuation.
  const conversation = chat.createConversation()
  const first = conversation.prepare({ messages: messages.slice(0, 1), tools })
  const sampledIds = chat.encode('<tool_call>\n{"name": "lookup", "arguments": {"name": "iron"}}\n</tool_call><|im_end|>')
  conversation.record(0, first, { tokenIds: sampledIds, message: calling })
  const second = conversation.prepare({ messages: messages.slice(0, 3), tools })
  expect(second.parent).toBe(0)
  expect([...row.tokenIds]).toEqual([...second.promptTokenIds, ...chat.encode('It is 26.<|im_end|>')])
  expect([...row.lossMask]).toEqual([
    ...first.promptTokenIds.map(() => 0),
    ...sampledIds.map(() => 1),
    ...second.promptTokenIds.slice(first.promptTokenIds.length + sampledIds.length).map(() => 0),
    ...chat.encode('It is 26.<|im_end|>').map(() => 1),
  ])
  expect(row.rolloutLogprobs).toHaveLength(row.tokenIds.length)
  expect(row).toMatchObject({ group: 'iron', advantage: null, provenance: { taskId: 'iron', sample: 0 } })
})

/** Templates for which no demonstration can be made, with the reason. */
const refused: Partial<Record<FormatName, string>> = {
  'deepseek-r1': 'writes an assistant message otherwise than its generation prompt begins it',
  'gemma-3': 'cannot print tool calls',
}

describe.each(formatNames)('in the format of %s', (name) => {
  test('what is learned is read back as what was demonstrated', async () => {
    await using folder = await writeFormat(name)
    const chat = await loadChatModel({ directory: folder.directory, stopTokenIds: folder.stopTokenIds })
    const message = refused[name]
    if (message)
      expect(() => toWarmUpSamples({ chat, messages, tools })).toThrow(
        expect.objectContaining({ code: 'TEMPLATE_UNSUPPORTED', message: expect.stringContaining(message) }),
      )
    else {
      const read = toWarmUpSamples({ chat, messages, tools }).flatMap((row) => readBack(chat, row, folder.stopTokenIds))
      expect(read).toEqual([
        { content: '', calls: [{ name: 'lookup', arguments: { name: 'iron' } }] },
        { content: 'It is 26.', calls: [] },
      ])
    }
  })
})

/** Parses the learned parts of a row into messages, as the gateway does. */
function readBack(chat: ChatModel, { tokenIds, lossMask }: TrainingSample, stopTokenIds: readonly number[]) {
  const prompt = chat.createConversation().prepare({ messages: messages.slice(0, 1), tools })
  const parts: number[][] = []
  for (const [index, id] of tokenIds.entries()) {
    if (lossMask[index] === 0) continue
    if (lossMask[index - 1] === 0) parts.push([])
    parts.at(-1)?.push(id)
  }
  return parts.map((ids) => {
    expect(stopTokenIds).toContain(ids.at(-1))
    const parser = chat.createCompletionParser({ tools, prompt, mintToolCallId: (index) => `call_${index}` })
    parser.push(Int32Array.from(ids))
    const { message, issues } = parser.finish({ unified: 'stop' })
    expect(issues).toEqual([])
    const calls = (message.toolCalls ?? []).map((each) => ({ name: each.name, arguments: JSON.parse(each.arguments) }))
    return { content: (message.content ?? '').trim(), calls }
  })
}

test('where the template rewrites what came before, a row of its own; every assistant message is learned once', async () => {
  const chat = await shape('think-dropping')
  const talk = [user('One?'), assistant('First.', { reasoning: 'because' }), user('Two?'), assistant('Second.', { reasoning: 'again' })]
  const rows = toWarmUpSamples({ chat, messages: talk })
  expect(rows.map((row) => chat.decode(learned(row)))).toEqual([
    '<think>\nbecause\n</think>\n\nFirst.<|im_end|>',
    '<think>\nagain\n</think>\n\nSecond.<|im_end|>',
  ])
  expect(chat.decode(rows[1]!.tokenIds)).not.toContain('because')
})

test('an answer that the tokenizer would read together with the end of its prompt is read by itself', async () => {
  const chat = await chatMlLike(
    `{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`,
  )
  const [row] = toWarmUpSamples({ chat, messages: [user('q'), assistant('\nyes')] }) as [TrainingSample]
  const prompt = chat.createConversation().prepare({ messages: [user('q')], tools: [] }).promptTokenIds
  const together = chat.encode('<|im_start|>assistant\n\nyes')
  expect(together.length).toBeLessThan(chat.encode('<|im_start|>assistant\n').length + chat.encode('\nyes').length)
  expect([...row.tokenIds]).toEqual([...prompt, ...chat.encode('\nyes<|im_end|>')])
})

test('a conversation in which the assistant says nothing has no rows', async () => {
  expect(toWarmUpSamples({ chat: await shape('chat-ml'), messages: [user('q')] })).toEqual([])
})
