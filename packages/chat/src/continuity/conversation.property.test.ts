import type { Message, ToolCall, ToolDefinition } from '@aworld-train/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatNames, writeFormat } from '../format-fixtures.test-support.ts'
import { assemble, openModel } from '../load-chat-model.ts'
import type { OpenedModel } from '../opened-model.ts'
import { createChatRenderer } from '../render/chat-renderer.ts'
import { shapeNames, writeShape } from '../template-shapes.test-support.ts'
import { readTokenizerFiles } from '../tokenizer-files.ts'
import type { ChatModel, PreparedPrompt } from '../types.ts'
import type { ModelOnDisk } from '../write-model.test-support.ts'
import { markMessage } from './marks.ts'
import { firstStop } from './stop-texts.ts'

const now = new Date(2026, 6, 4)
const tools: ToolDefinition[] = ['look_up', 'add'].map((name) => ({
  name,
  description: 'Does it.',
  parameters: { type: 'object', properties: { 10: {}, 2: {} } },
}))

type Folder = ModelOnDisk & { readonly stopTokenIds: readonly number[] }

async function open(write: () => Promise<Folder>): Promise<OpenedModel> {
  await using folder = await write()
  return openModel(await readTokenizerFiles(folder.directory), { stopTokenIds: folder.stopTokenIds, now })
}

/** Renders whole messages with the template, without any continuity. */
function renderWhole(
  { templates, probe, reasoning }: OpenedModel,
  messages: readonly Message[],
  withTools: boolean,
  prompt: boolean,
): string {
  const renderer = createChatRenderer(templates, { ...probe, reasoningTags: reasoning })
  return renderer.render({ messages, tools: renderer.toolSet(withTools ? tools : []), addGenerationPrompt: prompt, now })
}

interface OwnTextInput {
  readonly before: readonly Message[]
  readonly turn: Message
  readonly after: readonly Message[]
  readonly withTools: boolean
}

/** The template's text for `turn` between its neighbours, up to its stop token; `null` if the turn's prompt is then printed differently. */
function ownText(model: OpenedModel, { before, turn, after, withTools }: OwnTextInput): string | null {
  const prompt = renderWhole(model, before, withTools, true)
  const whole = renderWhole(model, [...before, turn, ...after], withTools, true)
  const { marked, marks } = markMessage('T', turn)
  const skeleton = renderWhole(model, [...before, marked, ...after], withTools, true)
  const last = marks.at(-1)!.text
  const stop = firstStop(skeleton, model.stops, skeleton.lastIndexOf(last) + last.length)
  if (!whole.startsWith(prompt) || !skeleton.includes(last) || !stop) return null
  const tail = skeleton.slice(stop.end)
  return whole.endsWith(tail) ? whole.slice(prompt.length, whole.length - tail.length) : null
}

type Step =
  | { readonly kind: 'answer'; readonly text: string; readonly reasoning: string; readonly ending: 'own' | 'cut' | 'other-stop' }
  | { readonly kind: 'calls'; readonly text: string; readonly values: readonly string[]; readonly results: readonly string[] }

const text = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('iron', ' two  words\n', 'tool', '漢字 🙂', 'a\n\nb', '{"x": 1}', "it's \\n") },
  fc.string({ maxLength: 12 }).filter((value) => !/[<[]/.test(value)),
)
const filled = text.map((value) => `w${value}`)
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('answer' as const),
      text: fc.oneof(filled, fc.constant('')),
      reasoning: fc.oneof(fc.constant(''), filled),
      ending: fc.constantFrom('own' as const, 'own' as const, 'cut' as const, 'other-stop' as const),
    }),
    fc.record({
      kind: fc.constant('calls' as const),
      text: fc.oneof({ weight: 3, arbitrary: fc.constant('') }, filled),
      values: fc.array(text, { minLength: 1, maxLength: 2 }),
      results: fc.tuple(text, text),
    }),
  ),
  { minLength: 1, maxLength: 4 },
)

interface Request {
  readonly prepared: PreparedPrompt
  readonly messages: readonly Message[]
  /** Whether every sampled turn so far was the template's own text, token for token. */
  readonly isOwn: boolean
}

/** Plays a script against a model, without steps that its template cannot take. */
function play(opened: OpenedModel, chat: ChatModel, script: readonly Step[], vary = ''): Request[] {
  const withCalls = opened.probe.syntax !== null
  const offeredTools = withCalls ? tools : []
  const conversation = chat.createConversation({ now })
  const messages: Message[] = [{ role: 'user', content: 'Start' }]
  const requests: Request[] = []
  let isOwn = true
  const ask = (): PreparedPrompt => {
    const prepared = conversation.prepare({ messages: [...messages], tools: offeredTools })
    requests.push({ prepared, messages: [...messages], isOwn })
    return prepared
  }
  for (const [index, step] of script.entries()) {
    if (step.kind === 'calls' && !withCalls) continue
    const prepared = ask()
    const turn = toTurn(step, index, opened, vary)
    const after = followUp(step, turn)
    const template = ownText(opened, { before: messages, turn, after, withTools: withCalls })
    const closing = opened.probe.stops[turn.toolCalls ? 'call' : 'plain'] ?? [...opened.stops.values()][0]!
    const ending = step.kind === 'answer' ? step.ending : 'own'
    const ids = sampledIds(opened, template ?? `${turn.content}${closing}`, ending)
    conversation.record(index, prepared, { tokenIds: ids, message: turn, truncated: ending === 'cut' })
    const whole = opened.tokenizer.encode(renderWhole(opened, messages, withCalls, true) + template)
    const rebuilt = [...prepared.promptTokenIds, ...ids]
    isOwn &&= template !== null && ending === 'own' && whole.length === rebuilt.length && whole.every((id, at) => id === rebuilt[at])
    messages.push(turn, ...after)
  }
  ask()
  return requests
}

function toTurn(step: Step, index: number, { probe }: OpenedModel, vary: string): Message {
  if (step.kind === 'answer') {
    const reasoning = probe.reasoningField === 'none' || step.reasoning === '' ? {} : { reasoning: step.reasoning + vary }
    return { role: 'assistant', content: step.text === '' ? '' : step.text + vary, ...reasoning }
  }
  const values = probe.parallelCalls === 'all' ? step.values : step.values.slice(0, 1)
  const toolCalls: ToolCall[] = values.map((value, call) => ({
    id: `call_${index}_${call}`,
    name: call === 0 ? 'look_up' : 'add',
    arguments: JSON.stringify({ key: value + vary, n: 2 }),
  }))
  return { role: 'assistant', content: step.text === '' ? null : step.text + vary, toolCalls }
}

function followUp(step: Step, turn: Message): Message[] {
  if (step.kind === 'answer') return [{ role: 'user', content: `Next ${step.text}` }]
  return (turn.toolCalls ?? []).map(({ id }, index) => ({ role: 'tool', toolCallId: id, content: step.results[index] ?? '' }))
}

function sampledIds({ tokenizer, engineStopIds }: OpenedModel, text: string, ending: 'own' | 'cut' | 'other-stop'): Int32Array {
  const ids = tokenizer.encode(text).slice()
  if (ending === 'cut') return ids.slice(0, -1)
  if (ending === 'other-stop') ids[ids.length - 1] = [...engineStopIds].at(-1)!
  return ids
}

const startsWith = (whole: Int32Array, start: readonly number[]): boolean => start.every((id, at) => whole[at] === id)
const models: readonly (readonly [string, () => Promise<Folder>])[] = [
  ...shapeNames.map((name) => [name, () => writeShape(name)] as const),
  ...formatNames.map((name) => [`format ${name}`, () => writeFormat(name)] as const),
  ['chat-ml with a mark for spaces', () => writeShape('chat-ml', { tokenizer: 'metaspace' })],
  ['next-header with a mark for spaces', () => writeShape('next-header', { tokenizer: 'metaspace' })],
  ['chat-ml with tokens that swallow white space', () => writeShape('chat-ml', { rstrip: true })],
]

describe.each(models)('%s', async (_, write) => {
  const opened = await open(write)
  const runs = { numRuns: 10 }

  test.each(['template', 'loop', 'as-sampled'] as const)('sampled ids are never changed, with history: %s', (history) => {
    const chat = assemble(opened, history)
    fc.assert(
      fc.property(steps, (script) => {
        const recorded = recordSampled(chat)
        const requests = play(opened, recorded.chat, script)
        for (const { prepared } of requests) {
          if (prepared.parent === null) continue
          const parent = requests.find(({ prepared: candidate }) => candidate === recorded.prepared.get(prepared.parent!))!
          const before = [...parent.prepared.promptTokenIds, ...recorded.sampled.get(prepared.parent)!]
          expect(startsWith(prepared.promptTokenIds, before)).toBe(true)
          expect(prepared.promptTokenIds.length).toBeGreaterThan(before.length)
          expect(prepared.branchReasons).toEqual([])
        }
      }),
      runs,
    )
  })

  test('where the policy sampled what the template writes, prompts are those of the whole history', () => {
    for (const history of ['template', 'loop'] as const) {
      const chat = assemble(opened, history)
      fc.assert(
        fc.property(steps, (script) => {
          for (const { prepared, messages, isOwn } of play(opened, chat, script)) {
            const tolerated = Object.keys(prepared.tolerated)
            if (prepared.parent !== null && (!isOwn || tolerated.length > 0)) continue
            expect(prepared.promptTokenIds).toEqual(
              opened.tokenizer.encode(renderWhole(opened, messages, opened.probe.syntax !== null, true)),
            )
          }
        }),
        runs,
      )
    }
  })

  test('what is appended does not depend on the sampled text', () => {
    const chat = assemble(opened, 'as-sampled')
    fc.assert(
      fc.property(steps, (script) => {
        const [plain, varied] = ['', 'varied'].map((vary) => {
          const recorded = recordSampled(chat)
          return suffixesOf(play(opened, recorded.chat, script, vary), recorded)
        })
        expect(varied).toEqual(plain)
      }),
      runs,
    )
  })

  test('the same script gives the same bytes', () => {
    const chat = assemble(opened, 'loop')
    fc.assert(
      fc.property(steps, (script) => {
        const ids = () => play(opened, chat, script).map(({ prepared }) => [...prepared.promptTokenIds])
        expect(ids()).toEqual(ids())
      }),
      { numRuns: 4 },
    )
  })
})

interface Recorder {
  readonly chat: ChatModel
  readonly sampled: Map<number, Int32Array>
  readonly prepared: Map<number, PreparedPrompt>
}

/** The same model, which also keeps a copy of what its conversations record. */
function recordSampled(chat: ChatModel): Recorder {
  const sampled = new Map<number, Int32Array>()
  const prepared = new Map<number, PreparedPrompt>()
  const createConversation: ChatModel['createConversation'] = (options) => {
    const conversation = chat.createConversation(options)
    return {
      prepare: (request) => conversation.prepare(request),
      record(index, prompt, result) {
        sampled.set(index, result.tokenIds)
        prepared.set(index, prompt)
        conversation.record(index, prompt, result)
      },
    }
  }
  return { chat: { ...chat, createConversation }, sampled, prepared }
}

function suffixesOf(requests: readonly Request[], { sampled, prepared }: Recorder): (number[] | string)[] {
  return requests.map(({ prepared: prompt }) => {
    if (prompt.parent === null) return `branch: ${prompt.branchReasons}`
    const kept = prepared.get(prompt.parent)!.promptTokenIds.length + sampled.get(prompt.parent)!.length
    return Array.from(prompt.promptTokenIds.subarray(kept))
  })
}
