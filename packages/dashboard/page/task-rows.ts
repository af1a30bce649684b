import type { CellOutcome, EvaluationCell, EvaluationTask, EvaluationView } from '@aworld-train/core'
import { spread } from './format.ts'

/** A task as a row, with its rollouts in each evaluation; `null` where an evaluation does not have it. */
export interface TaskRow {
  readonly key: string
  readonly task: EvaluationTask
  readonly sides: readonly (EvaluationTask | null)[]
  /** Mean reward in the first evaluation less that in the second; `null` unless both have scored it. */
  readonly change: number | null
}

/** `differs`: the greatest change first or, in one evaluation, the least agreement of samples. `dataset`: as the first evaluation has them. */
export type TaskOrder = 'differs' | 'dataset'

/** Rows of evaluations side by side. Equal tasks have equal hashes; a task that is there twice pairs in order. */
export function taskRows(evaluations: readonly EvaluationView[], order: TaskOrder): TaskRow[] {
  const rows = new Map<string, (EvaluationTask | null)[]>()
  for (const [index, { tasks }] of evaluations.entries()) {
    const times = new Map<string, number>()
    for (const task of tasks) {
      const time = times.get(task.hash) ?? 0
      times.set(task.hash, time + 1)
      const key = `${task.hash} ${time}`
      const sides = rows.get(key) ?? evaluations.map(() => null)
      sides[index] = task
      rows.set(key, sides)
    }
  }
  const list = [...rows].map(([key, sides]): TaskRow => {
    const [first, second] = sides
    const change = first?.mean == null || second?.mean == null ? null : first.mean - second.mean
    return { key, task: sides.find((side) => side !== null)!, sides, change }
  })
  return order === 'dataset'
    ? list
    : list
        .map((row) => ({ row, rank: rankOf(row) }))
        .sort(byRank)
        .map(({ row }) => row)
}

/** What differs more comes first; of what differs alike, the less rewarded. */
function rankOf({ sides, change }: TaskRow): readonly number[] {
  const cells = sides.flatMap((side) => side?.cells ?? [])
  const means = sides.flatMap((side) => side?.mean ?? [])
  const own = sides.map((side) => spread(side?.cells.flatMap(({ reward }) => reward ?? []) ?? []).deviation)
  const failed = cells.filter(({ outcome }) => outcome === 'failed').length
  return [...(sides.length > 1 ? [change === null ? -1 : Math.abs(change)] : []), Math.max(...own), failed, -spread(means).mean || 0]
}

function byRank(a: { readonly rank: readonly number[] }, b: { readonly rank: readonly number[] }): number {
  const place = a.rank.findIndex((value, index) => value !== b.rank[index])
  return place < 0 ? 0 : b.rank[place]! - a.rank[place]!
}

export interface CellFilter {
  readonly outcome: string | null
  readonly reason: string | null
  readonly tool: string | null
}

/** Whether a rollout has all that a filter names. */
export const matchesCell = ({ outcome, reason, tools }: EvaluationCell, filter: CellFilter) =>
  (filter.outcome === null || outcome === filter.outcome) &&
  (filter.reason === null || reason === filter.reason) &&
  (filter.tool === null || tools.includes(filter.tool))

/** In the order in which they are named everywhere. */
export const outcomes: readonly CellOutcome[] = ['right', 'partly', 'wrong', 'failed', 'unscored', 'running', 'waiting']

/** Two rollouts that show most of a difference: of two evaluations, else of one, with rewards that differ if there are such. */
export function partners({ sides }: TaskRow): readonly [first: number, a: string, second: number, b: string] | null {
  const ended = sides.map((side) => side?.cells.filter(({ reason }) => reason !== null) ?? [])
  const [left = [], right = left] = ended
  for (const a of left)
    for (const b of right) if (a !== b && a.reward !== b.reward) return [0, a.rollout, ended.length > 1 ? 1 : 0, b.rollout]
  if (ended.length > 1) return left[0] && right[0] ? [0, left[0].rollout, 1, right[0].rollout] : null
  return left[1] ? [0, left[0]!.rollout, 0, left[1].rollout] : null
}
