import type { CompletionDelta } from '@aworld-train/chat'
import type { Message, ToolCall, ToolDefinition } from '@aworld-train/core'
import fc from 'fast-check'
import type { Completion, ModelCall, StreamPiece, ToolChoice } from '../call.ts'

const text = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 20 }), fc.constantFrom('', ' a\n', '</tool_call>', '\u2028"\\', 'é\u0301🙂'))
const words = text.filter((value) => value !== '')
const names = ['lookup', 'web_search', 'ein-Name'] as const

const argumentsText = fc.oneof(
  fc
    .tuple(fc.dictionary(fc.constantFrom('a', 'b', '10', '9', 'é'), fc.jsonValue({ maxDepth: 2 })), fc.constantFrom(0, 1))
    .map(([value, indent]) => JSON.stringify(value, null, indent)),
  // JSON.stringify would not write any of these.
  fc.constantFrom('{"n": 12345678901234567890, "x":2.0}', '{"9":1E5,"1":[1.0]}', '{"a":1,"a":2,"\\u0061\\/":"\\ud83d"}'),
)

const schema = fc.record({
  type: fc.constant('object'),
  properties: fc.dictionary(fc.constantFrom('a', 'b', '10'), fc.constantFrom({ type: 'string' }, { type: 'number', minimum: 1 })),
})

export const tools: fc.Arbitrary<ToolDefinition[]> = fc
  .uniqueArray(fc.constantFrom(...names))
  .chain((chosen) => fc.tuple(...chosen.map((name) => fc.record({ name: fc.constant(name), description: words, parameters: schema }))))

const calls = fc.array(fc.record({ name: fc.constantFrom(...names), arguments: argumentsText }), { minLength: 1, maxLength: 3 })

const assistant = fc.record({ content: fc.option(words), reasoning: fc.option(words), calls: fc.option(calls, { freq: 2 }) })

interface Round {
  readonly user: string
  readonly answers: readonly { content: string | null; reasoning: string | null; calls: readonly Omit<ToolCall, 'id'>[] | null }[]
  readonly results: readonly string[]
}

const round: fc.Arbitrary<Round> = fc.record({
  user: text,
  answers: fc.array(assistant, { minLength: 1, maxLength: 2 }),
  results: fc.array(text, { minLength: 6, maxLength: 6 }),
})

function toMessage(content: string | null, reasoning: string | null, toolCalls: readonly ToolCall[]): Message {
  return {
    role: 'assistant',
    content,
    ...(reasoning !== null && { reasoning }),
    ...(toolCalls.length > 0 && { toolCalls: [...toolCalls] }),
  }
}

function toHistory(system: string | null, rounds: readonly Round[], last: string): Message[] {
  const messages: Message[] = system === null ? [] : [{ role: 'system', content: system }]
  let minted = 0
  for (const { user, answers, results } of rounds) {
    for (const [index, { content, reasoning, calls: callShapes }] of answers.entries()) {
      if (index === 0 || messages.at(-1)?.role === 'assistant') messages.push({ role: 'user', content: user })
      const toolCalls = (callShapes ?? []).map((call) => ({ id: `call_${minted++}`, ...call }))
      messages.push(toMessage(content ?? (toolCalls.length > 0 ? null : 'ok'), reasoning, toolCalls))
      for (const [at, { id }] of toolCalls.entries()) messages.push({ role: 'tool', toolCallId: id, content: results[at] ?? '' })
    }
  }
  return [...messages, { role: 'user', content: last }]
}

/** Conversations of agents: instructions, rounds of answers and tool results, and a user at the end. */
export const histories: fc.Arbitrary<Message[]> = fc
  .tuple(fc.option(words), fc.array(round, { maxLength: 3 }), text)
  .map(([system, rounds, last]) => toHistory(system, rounds, last))

function choiceAmong(definitions: readonly ToolDefinition[]): fc.Arbitrary<ToolChoice> {
  const parallel = fc.boolean()
  const plain = fc.record({ kind: fc.constantFrom('auto' as const, 'none' as const), parallel })
  if (definitions.length === 0) return plain
  const named = fc.record({ kind: fc.constant('named' as const), name: fc.constantFrom(...definitions.map(({ name }) => name)), parallel })
  return fc.oneof(plain, fc.record({ kind: fc.constant('required' as const), parallel }), named)
}

/** Calls in the neutral form, without parts that only one dialect has. */
export const modelCalls: fc.Arbitrary<ModelCall> = tools.chain((definitions) =>
  fc.record({
    model: fc.constantFrom('policy', 'another/model'),
    messages: histories,
    tools: fc.constant(definitions),
    toolsJson: fc.constant(undefined),
    customTools: fc.constant<ReadonlySet<string>>(new Set()),
    hosted: fc.constant([]),
    toolChoice: choiceAmong(definitions),
    stream: fc.boolean(),
    maxTokens: fc.integer({ min: 1, max: 4096 }),
    stop: fc.constant<readonly string[]>([]),
    oddities: fc.constant([]),
    requestedSampling: fc.constantFrom({}, { temperature: 0.5 }, { temperature: 0, topP: 0.9 }),
    ignored: fc.constant([]),
    unusedFields: fc.constant({}),
    wants: fc.constant({ logprobs: null, tokenIds: false, streamUsage: false }),
  }),
)

/** Completions as the parser delivers them. */
export const completions: fc.Arbitrary<Completion> = fc
  .record({
    content: fc.option(words),
    reasoning: fc.option(words),
    calls: fc.option(calls, { freq: 2 }),
    cut: fc.boolean(),
    prompt: fc.nat(500),
    tokenIds: fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 12 }),
  })
  .map(({ content, reasoning, calls: callShapes, cut, prompt, tokenIds }) => {
    const toolCalls = (cut ? [] : (callShapes ?? [])).map((call, index) => ({ id: `call_new_${index}`, ...call }))
    const unified = cut ? 'length' : toolCalls.length > 0 ? 'tool-calls' : 'stop'
    return {
      message: toMessage(content, reasoning, toolCalls),
      finishReason: { unified, raw: unified === 'length' ? 'length' : 'stop' },
      tokenIds: Int32Array.from(tokenIds),
      logprobs: Float32Array.from(tokenIds, (id) => -id / 256),
      usage: { promptTokens: prompt, completionTokens: tokenIds.length, cachedTokens: Math.floor(prompt / 2) },
    }
  })

/** Cuts a completion into pieces of `size` characters, in the order of a message's parts. The ids come with the first. */
export function toPieces({ message, tokenIds, logprobs }: Completion, size: number): StreamPiece[] {
  const deltas: CompletionDelta[] = []
  const cut = (type: 'content' | 'reasoning', whole: string) => {
    const characters = [...whole]
    for (let at = 0; at < characters.length; at += size) deltas.push({ type, text: characters.slice(at, at + size).join('') })
  }
  cut('reasoning', message.reasoning ?? '')
  cut('content', message.content ?? '')
  for (const [index, call] of (message.toolCalls ?? []).entries()) deltas.push({ type: 'tool-call', call, index })
  const pieces: StreamPiece[] = deltas.map((delta) => ({ deltas: [delta], tokenIds: [], logprobs: [] }))
  return [{ deltas: [], tokenIds, logprobs }, ...pieces]
}
