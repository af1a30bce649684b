import { differenceOfMeans, type EvaluationComparison, type EvaluationResult, type MeanInterval } from '@aworld-train/core'
import { compareEvaluations, type FinishedEvaluation, findEvaluation, readEvaluation } from '@aworld-train/training'
import type { MatcherState } from 'vitest'
import type { EvaluationWithEpisodes } from './evaluate.ts'
import { explain, isReport, isResult, type Match, printInterval, rounded, wrongSubject } from './matcher.ts'

/** A report of `evaluate`, the path of an evaluation (or `last`), or an evaluation in the report of a training. */
export type ComparedReport = EvaluationWithEpisodes | EvaluationResult | string

/**
 * Whether the mean reward exceeds that of another evaluation by more than chance: the 95 % interval of the difference is above 0. Evaluations
 * with a row for each rollout are paired by task, as `aworld-train eval compare` does; core's `pairedDifference` has the interval and its
 * sources.
 */
export function toImproveOn(this: MatcherState, received: unknown, expected: unknown): Match {
  const [after, before] = [toSide(received), toSide(expected)]
  const paired = 'rows' in after && 'rows' in before ? compareWhole(after, before) : null
  const { mean, interval } = paired
    ? { mean: paired.difference.value, interval: paired.difference.interval }
    : differenceOfMeans(meanOf(resultOf(after)), meanOf(resultOf(before)))
  const pass = interval[0] > 0
  return {
    pass,
    message: () =>
      explain(this, 'toImproveOn', [
        `Expected: a mean reward ${this.isNot ? 'not ' : ''}above ${print(resultOf(before))}`,
        `Received: ${print(resultOf(after))}`,
        `Difference: ${mean > 0 ? '+' : ''}${rounded(mean)}, 95 % interval ${printInterval(interval)}${pass ? '' : interval[1] < 0 ? ', which lies below 0' : ', which holds 0'}`,
        ...(paired ? describePairs(paired) : []),
      ]),
  }
}

type Side = FinishedEvaluation | EvaluationResult
type Result = Pick<EvaluationResult, 'tasks'> & { readonly reward: number | null; readonly interval: readonly number[] | null }

function toSide(value: unknown): Side {
  if (typeof value === 'string') return readEvaluation(findEvaluation(value, { runPath: 'runs' }))
  if (isReport(value)) return { report: value, rows: value.results, inputs: {} }
  if (isResult(value)) return value
  throw wrongSubject('toImproveOn', 'two reports of evaluate, paths of evaluations, or two evaluations of a training', value)
}

/** The comparison of evaluations of the same tasks. Throws a TypeError for a task that only one of them has. */
function compareWhole(after: FinishedEvaluation, before: FinishedEvaluation): EvaluationComparison {
  const [ours, theirs] = [after, before].map(({ rows }) => new Map(rows.map(({ taskHash, taskId }) => [taskHash, taskId])))
  const lone = [...ours!].find(([hash]) => !theirs!.has(hash)) ?? [...theirs!].find(([hash]) => !ours!.has(hash))
  if (lone) throw new TypeError(`toImproveOn compares reports of the same tasks; task "${lone[1]}" is in one of them alone.`)
  return compareEvaluations(after, before)
}

const resultOf = (side: Side): Result => ('rows' in side ? side.report : side)

function meanOf({ reward, interval, tasks }: Result): MeanInterval {
  if (reward === null || interval === null)
    throw new TypeError(`A report of ${tasks} tasks was not scored; give the training a rewardFunc.`)
  return { mean: reward, interval: [interval[0]!, interval[1]!] }
}

const print = ({ reward, interval, tasks }: Result) =>
  reward === null
    ? 'no reward'
    : `${rounded(reward)}${interval ? ` ${printInterval([interval[0]!, interval[1]!])}` : ''} over ${tasks} tasks`

function describePairs({ better, worse, equal, worst, notes }: EvaluationComparison): string[] {
  const example = worst ? `, most of all "${worst.taskId}" (${rounded(worst.from)} to ${rounded(worst.to)})` : ''
  return [`By task: better on ${better}, worse on ${worse}${example}, equal on ${equal}.`, ...notes]
}
