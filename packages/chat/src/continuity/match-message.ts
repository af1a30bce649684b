import type { Message, ToolCall } from '@aworld-train/protocol'
import { equalJson } from '../json/json-text.ts'

/** Kinds of differences between a request and the record that do not matter. */
export type Tolerance = 'role' | 'empty-content' | 'white-space' | 'ids' | 'arguments' | 'reasoning' | 'empty-turn'

const none: readonly Tolerance[] = []

/**
 * The ids of calls in one request, as the conversation knows them: a client may have replaced ours, may use an id again in
 * a later turn, and may leave ids out, in which case results answer the calls in their order.
 */
export class CallIds {
  readonly #known: ReadonlySet<string>
  #ours: Map<string, readonly string[]> | null = null

  /** `known` holds the ids of all calls that were delivered. */
  constructor(known: ReadonlySet<string>, ours: Map<string, readonly string[]> | null = null) {
    this.#known = known
    this.#ours = ours
  }

  /** Ids may be mapped in the copy without a trace in the original. */
  fork(): CallIds {
    return new CallIds(this.#known, this.#ours && new Map(this.#ours))
  }

  /** Whether `id` is that of a call that was delivered. */
  isOurs(id: string): boolean {
    return this.#known.has(id)
  }

  /** From here on results of the given calls answer the recorded ones. */
  map(given: readonly ToolCall[], recorded: readonly ToolCall[]): void {
    if (this.#ours === null && given.every(({ id }, index) => id === recorded[index]?.id)) return
    this.#ours ??= new Map()
    const grouped = Map.groupBy(recorded, (_, index) => given[index]?.id ?? '')
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

  /** The message with our ids. */
  translate(message: Message): Message {
    if (message.toolCalls) this.map(message.toolCalls, message.toolCalls)
    if (this.#ours === null || message.role !== 'tool') return message
    const id = this.ofResult(message)
    return id === (message.toolCallId ?? '') ? message : { ...message, toolCallId: id }
  }
}

/** Whether a message of a request is the recorded one: the differences that do not matter, or `null` where it is another. */
export function matchMessage(recorded: Message, given: Message, ids: CallIds): readonly Tolerance[] | null {
  if (recorded === given) return none
  let tolerated: Tolerance[] | undefined
  const tolerate = (kind: Tolerance) => {
    tolerated ??= []
    tolerated.push(kind)
  }
  if (recorded.role !== given.role) {
    if (plainRole(recorded) !== plainRole(given)) return null
    tolerate('role')
  }
  if (recorded.content !== given.content) {
    const [left, right] = [(recorded.content ?? '').trim(), (given.content ?? '').trim()]
    if (left !== right) return null
    tolerate(left === '' ? 'empty-content' : 'white-space')
  }
  if (recorded.role === 'tool') {
    if (ids.ofResult(given) !== (recorded.toolCallId ?? '')) {
      if (recorded.toolCallId && given.toolCallId) return null
      tolerate('ids')
    } else if (recorded.toolCallId !== given.toolCallId) tolerate('ids')
  }
  const calls = matchCalls(recorded.toolCalls, given.toolCalls, ids)
  if (calls === null) return null
  if (recorded.reasoning !== given.reasoning && (recorded.reasoning ?? '').trim() !== (given.reasoning ?? '').trim()) tolerate('reasoning')
  if (calls.length === 0) return tolerated ?? none
  return tolerated ? [...tolerated, ...calls] : calls
}

/** Ids decide: ours must stand with their call. Only where a client made its own, the arguments must be equal as JSON. */
function matchCalls(
  recorded: readonly ToolCall[] | undefined,
  given: readonly ToolCall[] | undefined,
  ids: CallIds,
): readonly Tolerance[] | null {
  if (!recorded?.length || !given?.length) return (recorded?.length ?? 0) === (given?.length ?? 0) ? none : null
  if (recorded.length !== given.length) return null
  const tolerated: Tolerance[] = []
  for (const [index, call] of recorded.entries()) {
    const other = given[index]
    if (other === undefined || call.name !== other.name) return null
    if (call.id !== other.id) {
      if (ids.isOurs(other.id) || !equalJson(call.arguments, other.arguments)) return null
      tolerated.push('ids')
    }
    if (call.arguments !== other.arguments) tolerated.push('arguments')
  }
  ids.map(given, recorded)
  return tolerated
}

const plainRole = ({ role }: Message): string => (role === 'developer' ? 'system' : role)
