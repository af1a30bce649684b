import type { RolloutRow } from '@aworld-train/core'
import type { RunReader } from '@aworld-train/store'

/**
 * Keys of the episodes with the greatest and the least reward: of the last evaluation, or of the last step if there is no evaluation.
 * Without rewards, the last that ended.
 */
export function bestAndWorst(run: Pick<RunReader, 'rolloutRows' | 'splits'>): string[] {
  const splits = Object.keys(run.splits())
  const evaluated = splits.filter((split) => split !== 'train')
  const rows = [...finishedRows(run, evaluated.length > 0 ? evaluated : splits)].sort((a, b) => a.finished! - b.finished!)
  const last = rows.at(-1)
  if (!last) return []
  const scored = rows.filter((row) => row.reward !== null && partOf(row) === partOf(last))
  if (scored.length === 0) return [last.key]
  const rewards = scored.map(({ reward }) => reward!)
  const [best, worst] = [Math.max(...rewards), Math.min(...rewards)].map((value) => scored.find(({ reward }) => reward === value)!.key)
  return [...new Set([best!, worst!])]
}

/** The evaluation or the step that a rollout belongs to. */
const partOf = ({ key, split, step }: RolloutRow) => /^evaluation\/[^/]+\//.exec(key)?.[0] ?? `${split} ${step}`

function* finishedRows(run: Pick<RunReader, 'rolloutRows'>, splits: readonly string[]): Generator<RolloutRow> {
  for (const split of splits) {
    for (let after: string | undefined; ; ) {
      const { rows, next } = run.rolloutRows({ split, status: 'done', limit: 2_000, after })
      yield* rows
      if (next === null) break
      after = next
    }
  }
}
