import type { RolloutTrace, ToolCallRecord, TurnTrace } from '@aworld-train/core'
import { integer } from './format.ts'

/** A model call or a tool call on the time line of a rollout. */
export interface Call {
  readonly id: string
  readonly lane: 'model' | 'tool'
  readonly agent: string
  readonly name: string
  /** Milliseconds since the rollout was queued. */
  readonly at: number
  readonly ms: number
  /** Place of the turn in the agent's turns; `null` for a call that no turn asked for. */
  readonly turn: number | null
  readonly note: string
}

export const turnId = (id: string, turn: TurnTrace) => `${id}/${turn.index}`
export const toolId = (call: ToolCallRecord) => `call/${call.trajectory}/${call.id}`

/** All calls of a rollout in the order in which they began. `start` is the time when it was queued, in Unix milliseconds. */
export function callsOf(trace: RolloutTrace, start: number): Call[] {
  const models = trace.invocations.flatMap(({ id, agent, turns }) =>
    turns.map((turn, place): Call => {
      const { startedAt, endedAt, completionIds, model } = turn
      const note = completionIds.length > 0 ? `${integer(completionIds.length)} tok` : (model ?? '')
      return {
        id: turnId(id, turn),
        lane: 'model',
        agent,
        name: agent,
        turn: place,
        note,
        at: startedAt - start,
        ms: endedAt - startedAt,
      }
    }),
  )
  const places = new Map(trace.invocations.map(({ id, turns }) => [id, new Map(turns.map(({ index }, place) => [index, place]))]))
  const tools = trace.toolCalls.map((call): Call => {
    const { agent, trajectory, name, timing, turn, isError } = call
    const place = turn === null ? null : (places.get(trajectory)?.get(turn) ?? null)
    return {
      id: toolId(call),
      lane: 'tool',
      agent,
      name,
      turn: place,
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
