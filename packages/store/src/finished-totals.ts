import type { DatabaseSync } from 'node:sqlite'
import type { FailureCount, RolloutRow, RolloutWaits, StopReason } from '@aworld-train/core'
import type { RolloutRowReads } from './rollout-rows.ts'

/** Totals of the results that finished after a place in the order of finishing. */
export interface FinishedTotals {
  /** Place of the last one; if nothing finished, that of the call. */
  readonly last: number
  readonly sums: readonly FinishedSum[]
  /** Training steps in which something finished, and those that were asked for, each with all its results. */
  readonly steps: readonly StepTotals[]
  /** Rollouts outside of training, in the order of finishing. A failed one counts 0; one whose reward abstained is left out. */
  readonly evaluated: readonly EvaluatedRollout[]
  /** Errors of rollouts that did not complete, by code and line of the user's code. */
  readonly errors: readonly FailureCount[]
  /** The first hundred rollouts that did not complete, in the order of finishing. */
  readonly incomplete: readonly RolloutRow[]
  /** The first twenty rollouts that ended in another attempt than their first, in the order of finishing. */
  readonly repeated: readonly RolloutRow[]
}

/** The condition for rollouts whose reward abstained, as in isUnscored() of core. */
export const unscored = `reward IS NULL AND turns > 0 AND stop_reason NOT IN ('failed', 'no-model-call', 'time-limit', 'cancelled')`

/** Most rows of each kind that totals list. */
export const mostNamed = { incomplete: 100, repeated: 20 } as const

/** A sum over the rollouts that ended for one reason, in training or outside of it. */
export interface FinishedSum {
  readonly stopReason: StopReason
  readonly isTraining: boolean
  readonly rollouts: number
  readonly turns: number
  readonly toolCalls: number
  readonly sampledTokens: number
  /** US dollars. */
  readonly cost: number
  /** Rollouts that ended in another attempt than their first. */
  readonly repeated: number
}

/** Results of a training step. A failed rollout counts 0; one whose reward abstained does not count. */
export interface StepTotals {
  readonly step: number
  readonly rewards: readonly number[]
  /** Groups whose rewards are all equal and 1 or more, differ, or are all equal and less than 1. */
  readonly groups: { readonly right: number; readonly mixed: number; readonly wrong: number }
  readonly waitMs: RolloutWaits
  readonly turns: number
  readonly toolCalls: number
  readonly tokens: number
  /** Greatest attempt number, from 0. */
  readonly attempts: number
}

export type EvaluatedRollout = Pick<RolloutRow, 'key' | 'split' | 'step' | 'taskId' | 'kind'> & { readonly reward: number }

/** Prepares the totals. SQLite adds up 100,000 rollouts in a tenth of the time that it takes to hand them over. */
export function createFinishedTotals(
  database: DatabaseSync,
  rows: RolloutRowReads,
): (after: number, steps?: readonly number[]) => FinishedTotals {
  const counts = 'sum(turns) AS turns, sum(tool_calls) AS toolCalls, sum(sampled_tokens) AS'
  const sums = database.prepare(`SELECT stop_reason AS stopReason, split = 'train' AS isTraining, count(*) AS rollouts,
    ${counts} sampledTokens, sum(cost) AS cost, sum(attempt > 0) AS repeated, max(finished) AS last FROM rollouts WHERE finished > ? GROUP BY 1, 2`)
  // The + keeps SQLite from using the index of the split, which most rollouts share.
  const changedSteps = database.prepare(
    "SELECT DISTINCT step FROM rollouts WHERE finished > ? AND finished <= ? AND +split = 'train' AND step IS NOT NULL",
  )
  const ofStep = "FROM rollouts WHERE step = ? AND split = 'train' AND status = 'done'"
  const parts = ['queue_ms', 'engine_ms', 'tools_ms'].map((part) => `coalesce(${part}, 0)`)
  const stepSums = database.prepare(`SELECT ${counts} tokens, max(attempt) AS attempts,
    ${['queue', 'engine', 'tools'].map((name, index) => `sum(${parts[index]}) AS ${name}`).join(', ')},
    sum(max(0, coalesce(ended_at, queued_at) - queued_at - ${parts.join(' - ')})) AS agent ${ofStep}`)
  const stepRewards = database.prepare(
    `SELECT coalesce(reward, 0) AS reward, count(*) AS rollouts ${ofStep} AND NOT (${unscored}) GROUP BY 1`,
  )
  const stepGroups =
    database.prepare(`SELECT sum(least = most AND least >= 1) AS right, sum(least < most) AS mixed, sum(least = most AND least < 1) AS wrong
    FROM (SELECT min(coalesce(reward, 0)) AS least, max(coalesce(reward, 0)) AS most ${ofStep} AND NOT (${unscored}) GROUP BY group_id)`)
  const evaluated = database.prepare(`SELECT key, split, step, task_id AS taskId, kind, coalesce(reward, 0) AS reward
    FROM rollouts WHERE finished > ? AND finished <= ? AND split <> 'train' AND NOT (${unscored}) ORDER BY finished`)
  const incomplete = database.prepare(
    `SELECT key FROM rollouts WHERE finished > ? AND finished <= ? AND stop_reason <> 'completed' ORDER BY finished LIMIT ${mostNamed.incomplete}`,
  )
  // With min(), SQLite takes the other columns from the row that has the minimum.
  const errors = database.prepare(`SELECT error ->> '$.code' AS code, count(*) AS count, min(finished) AS first, key AS rollout,
    error ->> '$.message' AS message, error ->> '$.source' AS source FROM rollouts
    WHERE finished > ? AND finished <= ? AND stop_reason <> 'completed' AND error IS NOT NULL GROUP BY code, source ORDER BY first`)
  const repeated = database.prepare(
    `SELECT key FROM rollouts WHERE finished > ? AND finished <= ? AND attempt > 0 ORDER BY finished LIMIT ${mostNamed.repeated}`,
  )
  const rowsOf = (keys: readonly Record<string, unknown>[]) => keys.flatMap(({ key }) => rows.rolloutRow(key as string) ?? [])

  function totalsOf(step: number): StepTotals {
    const { queue, engine, tools, agent, ...rest } = stepSums.get(step) as unknown as Omit<StepTotals, 'waitMs'> & RolloutWaits
    const rewards = stepRewards.all(step) as unknown as { reward: number; rollouts: number }[]
    return {
      ...rest,
      step,
      rewards: rewards.flatMap(({ reward, rollouts }) => Array<number>(rollouts).fill(reward)),
      groups: { ...(stepGroups.get(step) as unknown as StepTotals['groups']) },
      waitMs: { queue, engine, tools, agent },
    }
  }

  return (after, steps = []) => {
    const found = sums.all(after) as unknown as (Omit<FinishedSum, 'isTraining'> & { isTraining: number; last: number })[]
    const last = found.reduce((greatest, sum) => Math.max(greatest, sum.last), after)
    return {
      last,
      sums: found.map(({ last: _, isTraining, ...sum }) => ({ ...sum, isTraining: isTraining === 1 })),
      steps: [...new Set([...changedSteps.all(after, last).map(({ step }) => step as number), ...steps])]
        .map(totalsOf)
        .filter(({ rewards }) => rewards.length > 0),
      evaluated: evaluated.all(after, last) as unknown as EvaluatedRollout[],
      errors: (errors.all(after, last) as unknown as (FailureCount & { first: number })[]).map(({ first: _, ...error }) => error),
      incomplete: rowsOf(incomplete.all(after, last)),
      repeated: rowsOf(repeated.all(after, last)),
    }
  }
}
