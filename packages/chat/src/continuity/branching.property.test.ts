import type { Message, ToolDefinition } from '@aworld-train/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatNames, writeFormat } from '../format-fixtures.test-support.ts'
import { assemble, openModel } from '../load-chat-model.ts'
import type { OpenedModel } from '../opened-model.ts'
import { createChatRenderer } from '../render/chat-renderer.ts'
import { shapeNames, writeShape } from '../template-shapes.test-support.ts'
import { readTokenizerFiles } from '../tokenizer-files.ts'
import type { HistoryMode, PreparedPrompt } from '../types.ts'
import type { ModelOnDisk } from '../write-model.test-support.ts'
import { turnKind } from './marks.ts'

const now = new Date(2026, 6, 4)
const lookup: ToolDefinition = {
  name: 'look_up',
  description: 'Looks up.',
  parameters: { type: 'object', properties: { key: { type: 'string' } } },
}

/** One call: the earlier turn that it continues, the edit of its messages, and the sampled text. */
const step = fc.record({
  /** Turns to go back; more than there are begins another conversation. */
  back: fc.constantFrom(1, 1, 1, 1, 2, 3, 9),
  edit: fc.constantFrom('none', 'none', 'none', 'trimmed', 'new-ids', 'rewritten', 'foreign'),
  kind: fc.constantFrom('answer', 'answer', 'call', 'empty'),
  text: fc.constantFrom('iron', ' two  words\n', 'tool tool', '漢字 🙂', 'the end'),
  /** Kind of sampled ids: those of the text, single bytes of it, or unrelated ones. */
  ids: fc.constantFrom('encoded', 'split', 'other'),
  ending: fc.constantFrom('stop', 'stop', 'stop', 'cut', 'other-stop'),
})
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

interface Played {
  readonly prepared: PreparedPrompt
  /** The prompt as the engine got it. */
  readonly promptIds: readonly number[]
  readonly sampled: readonly number[]
}

function play(model: OpenedModel, history: HistoryMode, steps: readonly Step[]): Played[] {
  const conversation = assemble(model, history).createConversation({ now })
  const withCalls = model.probe.syntax !== null
  const tools = withCalls ? [lookup] : []
  const histories: (readonly Message[])[] = []
  const played: Played[] = []
  for (const [index, { back, edit, kind, text, ids, ending }] of steps.entries()) {
    const before = histories.at(-back) ?? [{ role: 'user', content: `Begin ${back > histories.length ? index : ''}` }]
    const messages = [...edited(before, edit, index)]
    const prepared = conversation.prepare({ messages, tools })
    const answer: Message =
      kind === 'call' && withCalls
        ? {
            role: 'assistant',
            content: null,
            toolCalls: [{ id: `ours_${index}`, name: 'look_up', arguments: JSON.stringify({ key: text }) }],
          }
        : { role: 'assistant', content: kind === 'empty' ? '' : text }
    const sampled = sampledIds(model, answer, ids, ending)
    played.push({ prepared, promptIds: [...prepared.promptTokenIds], sampled: [...sampled] })
    conversation.record(index, prepared, { tokenIds: sampled, message: answer, truncated: ending === 'cut' })
    const follow: Message = answer.toolCalls
      ? { role: 'tool', toolCallId: answer.toolCalls[0]!.id, content: `result ${index}` }
      : { role: 'user', content: `Next ${index}` }
    histories.push([...messages, answer, follow])
  }
  return played
}

function edited(messages: readonly Message[], edit: Step['edit'], index: number): readonly Message[] {
  if (edit === 'trimmed') return messages.map((message) => ({ ...message, content: message.content?.trim() ?? null }))
  if (edit === 'rewritten') return messages.map((message, at) => (at === 0 ? { ...message, content: `Rewritten ${index}` } : message))
  if (edit === 'foreign') return [...messages, { role: 'assistant', content: `Foreign ${index}` }, { role: 'user', content: 'And?' }]
  if (edit !== 'new-ids') return messages
  return messages.map((message) => ({
    ...message,
    ...(message.toolCallId && { toolCallId: `${message.toolCallId}-${index}` }),
    ...(message.toolCalls && { toolCalls: message.toolCalls.map((call) => ({ ...call, id: `${call.id}-${index}` })) }),
  }))
}

/** Ids that a model might sample for a message, including tokens that the tokenizer would not choose. */
function sampledIds(
  { tokenizer, probe, stops, engineStopIds }: OpenedModel,
  message: Message,
  ids: Step['ids'],
  ending: Step['ending'],
): Int32Array {
  const text = message.toolCalls?.[0]?.arguments ?? message.content ?? ''
  const encode = (part: string) => [...tokenizer.encode(part)]
  const body = ids === 'encoded' ? encode(text) : ids === 'split' ? [...text].flatMap(encode) : encode('elsewhere')
  if (ending === 'cut') return Int32Array.from(body.length > 0 ? body : encode('x'))
  const stopText = probe.stops[turnKind(message)] ?? [...stops.values()][0]!
  return Int32Array.from([...body, ending === 'stop' ? tokenizer.tokenId(stopText)! : [...engineStopIds].at(-1)!])
}

type Folder = ModelOnDisk & { readonly stopTokenIds: readonly number[] }
const folders: readonly (readonly [string, () => Promise<Folder>])[] = [
  ...shapeNames.map((name) => [name, () => writeShape(name)] as const),
  ...formatNames.map((name) => [`format ${name}`, () => writeFormat(name)] as const),
]

describe.each(folders)('%s', async (_, write) => {
  await using folder = await write()
  const model = openModel(await readTokenizerFiles(folder.directory), { stopTokenIds: folder.stopTokenIds, now })

  test.each(['template', 'loop', 'as-sampled'] as const)(
    'in a tree of conversations sampled ids stand as they were, with history: %s',
    (history) => {
      fc.assert(
        fc.property(fc.array(step, { minLength: 2, maxLength: 10 }), (steps) => {
          const played = play(model, history, steps)
          for (const { prepared, promptIds } of played) {
            // Later turns share the memory of a prompt and must not change it.
            expect([...prepared.promptTokenIds]).toEqual(promptIds)
            if (prepared.parent === null) {
              expect(prepared.branchReasons.length).toBeGreaterThan(0)
              continue
            }
            const parent = played[prepared.parent]!
            const before = [...parent.promptIds, ...parent.sampled]
            expect(promptIds.slice(0, before.length)).toEqual(before)
            expect(promptIds.length).toBeGreaterThan(before.length)
          }
        }),
        { numRuns: 12 },
      )
    },
  )

  test('with history: template the prompt of every branch is the rendering of its messages', () => {
    const renderer = createChatRenderer(model.templates, { ...model.probe, reasoningTags: model.reasoning })
    const tools = renderer.toolSet(model.probe.syntax === null ? [] : [lookup])
    fc.assert(
      fc.property(fc.array(step, { minLength: 2, maxLength: 8 }), (steps) => {
        for (const { prepared, promptIds } of play(model, 'template', steps)) {
          if (prepared.parent !== null) continue
          const text = renderer.render({ messages: prepared.messages, tools, addGenerationPrompt: true, now })
          expect(promptIds).toEqual([...model.tokenizer.encode(text)])
        }
      }),
      { numRuns: 6 },
    )
  })
})
