import type { RolloutTrace, ToolCallRecord, TurnTrace } from '@aworld-train/core'
import { integer } from './format.ts'

/** A model call or a tool call on the time line of a rollout. */
export interface Call {
  readonly id: string
  readonly lane: 'model' | 'tool'
  /** Id of its invocation. */
  readonly invocation: string
  readonly name: string
  /** Milliseconds since the rollout was queued. */
  readonly at: number
  readonly ms: number
  /** Place of the turn in the invocation's turns; `null` for a call that no turn asked for. */
  readonly turn: number | null
  /** Whether it is a tool call that started an invocation, and waits for its answer. */
  readonly isStart: boolean
  readonly note: string
}

export const turnId = (id: string, turn: TurnTrace) => `${id}/${turn.index}`
export const toolId = (call: Pick<ToolCallRecord, 'trajectory' | 'id'>) => `call/${call.trajectory}/${call.id}`

/** All calls of a rollout in the order in which they began. `start` is the time when it was queued, in Unix milliseconds. */
export function callsOf(trace: RolloutTrace, start: number): Call[] {
  const models = trace.invocations.flatMap(({ id, agent, turns }) =>
    turns.map((turn, place): Call => {
      const { startedAt, endedAt, completionIds, model } = turn
      const note = completionIds.length > 0 ? `${integer(completionIds.length)} tok` : (model ?? '')
      return {
        id: turnId(id, turn),
        lane: 'model',
        invocation: id,
        name: agent,
        turn: place,
        isStart: false,
        note,
        at: startedAt - start,
        ms: endedAt - startedAt,
      }
    }),
  )
  const places = new Map(trace.invocations.map(({ id, turns }) => [id, new Map(turns.map(({ index }, place) => [index, place]))]))
  const starts = new Set(
    trace.invocations.flatMap(({ startedBy }) =>
      startedBy.flatMap(({ trajectory, toolCall: id }) => (id === null ? [] : [toolId({ trajectory, id })])),
    ),
  )
  const tools = trace.toolCalls.map((call): Call => {
    const { trajectory, name, timing, turn, isError } = call
    const place = turn === null ? null : (places.get(trajectory)?.get(turn) ?? null)
    // An invocation that made no model call may have no record of its own.
    const invocation = places.has(trajectory) ? trajectory : (trace.invocations[0]?.id ?? trajectory)
    return {
      id: toolId(call),
      lane: 'tool',
      invocation,
      name,
      turn: place,
      isStart: starts.has(toolId(call)),
      note: isError ? 'error' : '',
      at: timing.startedAt - start,
      ms: timing.endedAt - timing.startedAt,
    }
  })
  // Sorting keeps the order of calls that begin at the same time: model calls first, in the order of their turns.
  return [...models, ...tools].sort((a, b) => a.at - b.at)
}

/** The stretch of `size` items of a long list that contains the one at `place`, and its start. */
export function stretchAt<Item>(list: readonly Item[], place: number, size: number): { from: number; shown: readonly Item[] } {
  const from = Math.floor(Math.max(0, place) / size) * size
  return { from, shown: list.slice(from, from + size) }
}
