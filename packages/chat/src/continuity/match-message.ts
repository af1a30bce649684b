import type { Message, ToolCall } from '@aworld-train/core'
import { equalJson } from '../json/json-text.ts'
import { type ReasoningTags, reasoningTags } from '../reasoning-tags.ts'

/** A kind of difference between a request and the record that does not matter. */
export type Tolerance =
  | 'role'
  | 'empty-content'
  | 'white-space'
  | 'ids'
  | 'arguments'
  | 'reasoning'
  | 'empty-turn'
  | 'split-message'
  | 'inline-reasoning'
  | 'ignored'

/** Differences that one conversation disregards. */
export interface MatchRules {
  /** Text that clients may change in their own messages. */
  readonly ignore: readonly RegExp[]
  /** The model's tags for reasoning. */
  readonly tags: ReasoningTags | null
}

const none: readonly Tolerance[] = []

/** All delivered calls, by the id that the client knows. */
export type DeliveredCalls = ReadonlyMap<string, ToolCall>

/**
 * Maps the ids of calls in one request to those of the conversation. A client may have replaced our ids, may use an id again in a later
 * turn, and may leave ids out; results then answer the calls in their order.
 */
export class CallIds {
  readonly #delivered: DeliveredCalls
  #ours: Map<string, readonly string[]> | null = null

  constructor(delivered: DeliveredCalls, ours: Map<string, readonly string[]> | null = null) {
    this.#delivered = delivered
    this.#ours = ours
  }

  /** A copy, in which ids can be mapped without changing the original. */
  fork(): CallIds {
    return new CallIds(this.#delivered, this.#ours && new Map(this.#ours))
  }

  /** Whether `id` is that of a delivered call. */
  isOurs(id: string): boolean {
    return this.#delivered.has(id)
  }

  /** Maps ids, so that later results of the received calls answer the recorded ones. */
  map(received: readonly ToolCall[], recorded: readonly ToolCall[]): void {
    if (this.#ours === null && received.every(({ id }, index) => id === recorded[index]?.id)) return
    this.#ours ??= new Map()
    const grouped = Map.groupBy(recorded, (_, index) => received[index]?.id ?? '')
    for (const [id, calls] of grouped)
      this.#ours.set(
        id,
        calls.map((call) => call.id),
      )
  }

  /** Our id of the call that a result names. */
  ofResult({ toolCallId = '' }: Message): string {
    const ours = this.#ours?.get(toolCallId)
    if (ours === undefined) return toolCallId
    if (ours.length > 1) this.#ours?.set(toolCallId, ours.slice(1))
    return ours[0] ?? toolCallId
  }

  /**
   * Returns the message with our ids. Arguments of our calls are as the policy wrote them, because a client may format numbers differently.
   */
  translate(message: Message): Message {
    if (message.toolCalls) {
      this.map(message.toolCalls, message.toolCalls)
      return { ...message, toolCalls: message.toolCalls.map((call) => this.#asDelivered(call)) }
    }
    if (this.#ours === null || message.role !== 'tool') return message
    const id = this.ofResult(message)
    return id === (message.toolCallId ?? '') ? message : { ...message, toolCallId: id }
  }

  #asDelivered(call: ToolCall): ToolCall {
    const delivered = this.#delivered.get(call.id)
    return delivered?.name === call.name && equalJson(delivered.arguments, call.arguments) ? delivered : call
  }
}

/**
 * Compares a message of a request with the recorded one. Returns the kinds of tolerated differences, or `null` if it is
 * another message. White space around a text may change only if the policy `sampled` it, because clients trim answers. A
 * change in a client's own text is an edit.
 */
export function matchMessage(
  recorded: Message,
  received: Message,
  ids: CallIds,
  sampled: boolean,
  { ignore }: Pick<MatchRules, 'ignore'>,
): readonly Tolerance[] | null {
  if (recorded === received) return none
  let tolerated: Tolerance[] | undefined
  const tolerate = (kind: Tolerance) => {
    tolerated ??= []
    tolerated.push(kind)
  }
  if (recorded.role !== received.role) {
    if (plainRole(recorded) !== plainRole(received)) return null
    tolerate('role')
  }
  if (recorded.content !== received.content) {
    const text = ({ content }: Message) => (sampled ? (content ?? '').trim() : (content ?? ''))
    const left = text(recorded)
    if (left === text(received)) tolerate(left === '' ? 'empty-content' : 'white-space')
    else if (!sampled && without(ignore, left) === without(ignore, text(received))) tolerate('ignored')
    else return null
  }
  if (recorded.role === 'tool') {
    if (ids.ofResult(received) !== (recorded.toolCallId ?? '')) {
      if (recorded.toolCallId && received.toolCallId) return null
      tolerate('ids')
    } else if (recorded.toolCallId !== received.toolCallId) tolerate('ids')
  }
  const calls = matchCalls(recorded.toolCalls, received.toolCalls, ids)
  if (calls === null) return null
  if (recorded.reasoning !== received.reasoning && (recorded.reasoning ?? '').trim() !== (received.reasoning ?? '').trim())
    tolerate('reasoning')
  if (calls.length === 0) return tolerated ?? none
  return tolerated ? [...tolerated, ...calls] : calls
}

/**
 * Compares calls by their ids. An id of ours must belong to the same call. If a client made its own ids, the
 * arguments must be equal as JSON.
 */
function matchCalls(
  recorded: readonly ToolCall[] | undefined,
  received: readonly ToolCall[] | undefined,
  ids: CallIds,
): readonly Tolerance[] | null {
  if (!recorded?.length || !received?.length) return (recorded?.length ?? 0) === (received?.length ?? 0) ? none : null
  if (recorded.length !== received.length) return null
  const tolerated: Tolerance[] = []
  for (const [index, call] of recorded.entries()) {
    const other = received[index]
    if (other === undefined || call.name !== other.name) return null
    if (call.id !== other.id) {
      if (ids.isOurs(other.id) || !equalJson(call.arguments, other.arguments)) return null
      tolerated.push('ids')
    }
    if (call.arguments !== other.arguments) tolerated.push('arguments')
  }
  ids.map(received, recorded)
  return tolerated
}

const plainRole = ({ role }: Message): string => (role === 'developer' ? 'system' : role)

const without = (ignore: readonly RegExp[], text: string): string => ignore.reduce((rest, pattern) => rest.replaceAll(pattern, ''), text)

const joinedText = (texts: readonly (string | null | undefined)[]): string => texts.map((text) => text ?? '').join('')

/** Joins messages of an assistant, because some clients send text and calls of one answer in separate messages. */
function joined(messages: readonly Message[]): Message {
  const [first] = messages as readonly [Message, ...Message[]]
  if (messages.length === 1) return first
  const reasoning = joinedText(messages.map((message) => message.reasoning))
  const toolCalls = messages.flatMap((message) => message.toolCalls ?? [])
  return {
    role: first.role,
    content: joinedText(messages.map(({ content }) => content)),
    ...(reasoning !== '' && { reasoning }),
    ...(toolCalls.length > 0 && { toolCalls }),
  }
}

/**
 * Moves the reasoning that a client wrote into the text of a message to its own field; `null` if the text does not begin with reasoning.
 */
function withoutInlineReasoning(message: Message, own: ReasoningTags | null): Message | null {
  const text = message.content?.trimStart() ?? ''
  const tags = [...(own ? [own] : []), ...reasoningTags].find(({ open }) => text.startsWith(open))
  const end = tags ? text.indexOf(tags.close) : -1
  if (!tags || end < 0) return null
  const { open, close, label = '' } = tags
  const inside = text.slice(open.length, end)
  const reasoning = inside.startsWith(label) ? inside.slice(label.length) : inside
  return { ...message, reasoning, content: text.slice(end + close.length) }
}

/**
 * Compares a sampled answer with the messages of a request from `from` on. Returns the differences, and the number of messages that the
 * answer takes there. Its reasoning may be in its text if it is the recorded one.
 */
export function matchAnswer(
  recorded: Message,
  received: readonly Message[],
  from: number,
  ids: CallIds,
  rules: MatchRules,
): { readonly tolerated: readonly Tolerance[]; readonly count: number } | null {
  for (let count = 1; received[from + count - 1]?.role === 'assistant'; count++) {
    const whole = joined(received.slice(from, from + count))
    const split: readonly Tolerance[] = count > 1 ? ['split-message'] : none
    const found = matchMessage(recorded, whole, ids, true, rules)
    if (found) return { tolerated: [...split, ...found], count }
    const apart = recorded.reasoning ? withoutInlineReasoning(whole, rules.tags) : null
    if (apart?.reasoning?.trim() !== recorded.reasoning?.trim()) continue
    const other = apart && matchMessage(recorded, apart, ids, true, rules)
    if (other) return { tolerated: [...split, 'inline-reasoning', ...other], count }
  }
  return null
}
