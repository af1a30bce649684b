import { differenceOfMeans, type EvaluationResult, type MeanInterval, pairedDifference } from '@aworld-train/core'
import type { MatcherState } from 'vitest'
import type { EvaluationWithEpisodes } from './evaluate.ts'
import { explain, isReport, isResult, type Match, printInterval, rounded, wrongSubject } from './matcher.ts'

/** A report of `evaluate`, or an evaluation in the report of a training. */
export type ComparedReport = EvaluationWithEpisodes | EvaluationResult

/**
 * Whether the mean reward exceeds that of another report by more than chance: the 95 % interval of the difference is above 0. Reports with
 * results are paired by task; core's `pairedDifference` has the interval and its sources.
 */
export function toImproveOn(this: MatcherState, received: unknown, expected: unknown): Match {
  for (const report of [received, expected])
    if (!isReport(report) && !isResult(report))
      throw wrongSubject('toImproveOn', 'two reports of evaluate, or two evaluations of a training', report)
  const after = received as ComparedReport
  const before = expected as ComparedReport
  const pairs = isReport(after) && isReport(before) ? pairTasks(after, before) : null
  const { mean, interval } = pairs
    ? pairedDifference(
        pairs.map(([, value]) => value),
        pairs.map(([, , value]) => value),
      )
    : differenceOfMeans(meanOf(after), meanOf(before))
  const pass = interval[0] > 0
  return {
    pass,
    message: () =>
      explain(this, 'toImproveOn', [
        `Expected: a mean reward ${this.isNot ? 'not ' : ''}above ${print(before)}`,
        `Received: ${print(after)}`,
        `Difference: ${mean > 0 ? '+' : ''}${rounded(mean)}, 95 % interval ${printInterval(interval)}${pass ? '' : interval[1] < 0 ? ', which lies below 0' : ', which holds 0'}`,
        ...(pairs ? describePairs(pairs) : []),
      ]),
  }
}

type Pair = readonly [taskId: string, after: number, before: number]

/** Mean rewards of each task in both reports, which must be of the same tasks. */
function pairTasks(after: EvaluationWithEpisodes, before: EvaluationWithEpisodes): Pair[] {
  const [ours, theirs] = [meansByTask(after), meansByTask(before)]
  const lone = [...ours.keys()].find((id) => !theirs.has(id)) ?? [...theirs.keys()].find((id) => !ours.has(id))
  if (lone !== undefined) throw new TypeError(`toImproveOn compares reports of the same tasks; task "${lone}" is in one of them alone.`)
  if (ours.size < 2) throw new TypeError(`toImproveOn needs at least 2 tasks for an interval; the reports have ${ours.size}.`)
  return [...ours].map(([id, value]) => [id, value, theirs.get(id) as number])
}

/** A rollout without a reward counts as 0, as in the mean of its report. */
function meansByTask({ results }: EvaluationWithEpisodes): Map<string, number> {
  const groups = Map.groupBy(results, ({ taskId }) => taskId)
  return new Map([...groups].map(([id, rollouts]) => [id, rollouts.reduce((sum, { reward }) => sum + (reward ?? 0), 0) / rollouts.length]))
}

function meanOf({ reward, interval, tasks }: ComparedReport): MeanInterval {
  if (reward === null || interval === null)
    throw new TypeError(`A report of ${tasks} tasks was not scored; give the training a rewardFunc.`)
  return { mean: reward, interval: [interval[0], interval[1]] }
}

const print = ({ reward, interval, tasks }: ComparedReport) =>
  reward === null ? 'no reward' : `${rounded(reward)}${interval ? ` ${printInterval(interval)}` : ''} over ${tasks} tasks`

function describePairs(pairs: readonly Pair[]): string[] {
  const worse = pairs.filter(([, after, before]) => after < before).sort((a, b) => a[1] - a[2] - (b[1] - b[2]))
  const better = pairs.filter(([, after, before]) => after > before).length
  const [worst] = worse
  const example = worst ? `, most of all "${worst[0]}" (${rounded(worst[2])} to ${rounded(worst[1])})` : ''
  return [`By task: better on ${better}, worse on ${worse.length}${example}, equal on ${pairs.length - better - worse.length}.`]
}
