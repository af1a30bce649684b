import type { DatabaseSync } from 'node:sqlite'
import { unscored } from './finished-totals.ts'

/** The rewards of one kind of task in one training step. A rollout that failed counts 0, one whose reward abstained not at all. */
export interface KindRewards {
  readonly step: number
  readonly kind: string
  readonly rollouts: number
  readonly sum: number
  readonly least: number
  readonly greatest: number
}

/** Reads the rewards of one training step by kind, or of all steps in their order. */
export function createKindRewardReads(database: DatabaseSync): (step?: number) => KindRewards[] {
  const read = (where: string) =>
    database.prepare(`SELECT step, kind, count(*) AS rollouts, sum(coalesce(reward, 0)) AS sum, min(coalesce(reward, 0)) AS least,
      max(coalesce(reward, 0)) AS greatest FROM rollouts WHERE ${where} AND split = 'train' AND status = 'done' AND NOT (${unscored})
      GROUP BY step, kind ORDER BY step, kind`)
  const ofAll = read('step IS NOT NULL')
  const ofOne = read('step = ?')
  return (step) => (step === undefined ? ofAll.all() : ofOne.all(step)) as unknown as KindRewards[]
}
