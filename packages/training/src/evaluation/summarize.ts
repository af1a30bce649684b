import {
  type AnswerKey,
  countFailures,
  type Episode,
  type EvaluationNumbers,
  type EvaluationRow,
  episodeCost,
  meanWithInterval,
  ownTurns,
  passRates,
  rewardCost,
  type StopReason,
  stableStringify,
  type TaskMean,
  type TrainingTask,
  type Turn,
  toEndedRollout,
  type Usage,
} from '@aworld-train/core'

/** The parts of an episode that an evaluation counts. */
export interface EvaluatedEpisode
  extends Pick<Episode, 'rollout' | 'attempt' | 'answer' | 'reward' | 'scores' | 'stopReason' | 'error' | 'timing'> {
  readonly trajectories: readonly { readonly turns: readonly Pick<Turn, 'attempt' | 'cost' | 'usage' | 'responseModel'>[] }[]
  readonly toolCalls: readonly { readonly name: string }[]
  readonly rewardTrajectories?: readonly { readonly turns: readonly Pick<Turn, 'cost'>[] }[] | undefined
}

/** A rollout of an evaluation; `null` is one that was not started. */
export interface EvaluationRollout {
  readonly task: Pick<TrainingTask, 'id' | 'hash'>
  /** Kind of the task. */
  readonly kind: string
  readonly rollout: string
  readonly sample: number
  readonly episode: EvaluatedEpisode | null
}

export interface SummaryOptions {
  readonly answers: ReadonlyMap<string, AnswerKey>
  /** Whether the cost of agents' calls is known where they cost anything. */
  readonly hasPrice: boolean
  /** Whether rewards only order the samples of a task, so that they have no mean. */
  readonly isRank?: boolean | undefined
}

/** Ends that say nothing about the agent. */
const withoutOutcome: ReadonlySet<StopReason> = new Set(['failed', 'no-model-call', 'cancelled', 'time-limit'])

/** Whether a rollout says nothing about its agent: it failed, or its prompt left the model no room for a turn. */
export const hasFailed = (episode: EvaluatedEpisode): boolean =>
  episode.reward === null &&
  (withoutOutcome.has(episode.stopReason) || (episode.stopReason !== 'completed' && turnsOf(episode).length === 0))

/** The row of a rollout in `results.jsonl`. */
export function toRow(
  { task, kind, rollout, sample, episode }: EvaluationRollout,
  { hasPrice }: Pick<SummaryOptions, 'hasPrice'>,
): EvaluationRow {
  const turns = turnsOf(episode)
  return {
    taskId: task.id,
    taskHash: task.hash,
    kind,
    sample,
    rollout,
    answer: episode?.answer ?? null,
    reward: episode?.reward ?? null,
    scores: episode?.scores ?? {},
    stopReason: episode?.stopReason ?? null,
    error: episode?.error ? { code: episode.error.code, message: episode.error.message } : null,
    turns: turns.length,
    toolCalls: episode?.toolCalls.length ?? 0,
    cost: hasPrice && episode ? episodeCost(episode) : null,
    durationMs: episode ? episode.timing.endedAt - episode.timing.startedAt : 0,
  }
}

/**
 * Summarizes an evaluation. Means are over tasks, each with the mean of its rollouts that have a reward: a rollout that failed, was not
 * started, or whose reward abstained is in none of them. `bounds` says what the failed ones could change.
 */
export function summarizeRollouts(rollouts: readonly EvaluationRollout[], options: SummaryOptions): EvaluationNumbers {
  const { answers, hasPrice, isRank = false } = options
  const byTask = [...Map.groupBy(rollouts, ({ task }) => task.id).values()]
  const ended = rollouts.flatMap(({ episode }) => (episode ? [episode] : []))
  const failed = ended.filter(hasFailed)
  const scored = ended.filter(({ reward }) => reward !== null)
  const missing = rollouts.length - ended.length + failed.length
  const rewards = byTask.map(rewardsOf)
  const isScored = scored.length > 0 && !isRank
  const overall = toTaskMean(meansOf(rewards))
  const kinds = [...Map.groupBy(byTask, ([first]) => first!.kind)]
  const turns = ended.flatMap(turnsOf)
  const votes = isRank ? [] : byTask.flatMap(majorityOf)
  return {
    answeredAs: mostFrequentFirst(turns.flatMap(({ responseModel }) => responseModel ?? [])),
    tasks: byTask.length,
    rollouts: rollouts.length,
    failed: failed.length,
    notStarted: rollouts.length - ended.length,
    unscored: ended.length - failed.length - scored.length,
    failures: countFailures(failed.map(toEndedRollout)),
    scored: { tasks: overall.tasks, rollouts: scored.length },
    reward: isScored ? overall.value : null,
    interval: isScored ? overall.interval : null,
    bounds: isScored && missing > 0 ? boundsOf(byTask) : null,
    passAtK: isScored ? Object.fromEntries(Object.entries(passRates(rewards)).map(([k, values]) => [k, toTaskMean(values)])) : {},
    majority: votes.length > 0 && byTask.some(({ length }) => length > 1) ? toTaskMean(votes) : null,
    mostFrequentAnswer: mostFrequentShare([...answers.values()].flatMap(({ groundTruth }) => (groundTruth == null ? [] : [groundTruth]))),
    byKind: Object.fromEntries(
      kinds.flatMap(([kind, tasks]) => {
        const ofKind = tasks.map(rewardsOf)
        const values = meansOf(ofKind)
        return values.length === 0 || isRank ? [] : [[kind, { ...toTaskMean(values), rollouts: ofKind.flat().length }]]
      }),
    ),
    cost: hasPrice ? sumOf(turns.map(({ cost = 0 }) => cost)) : null,
    rewardCost: sumOf(ended.map(rewardCost)),
    usage: sumUsage(turns.map(({ usage }) => usage)),
    perRollout: {
      turns: turns.length / Math.max(1, ended.length),
      toolCalls: sumOf(ended.map(({ toolCalls }) => toolCalls.length)) / Math.max(1, ended.length),
      seconds: sumOf(ended.map(({ timing }) => timing.endedAt - timing.startedAt)) / 1000 / Math.max(1, ended.length),
    },
    unseen: ended.filter((episode) => !hasFailed(episode) && turnsOf(episode).length === 0).length,
  }
}

const turnsOf = (episode: EvaluatedEpisode | null) => (episode ? ownTurns(episode) : [])

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)
const meanOf = (values: readonly number[]) => sumOf(values) / values.length
const meansOf = (tasks: readonly (readonly number[])[]) => tasks.filter(({ length }) => length > 0).map(meanOf)
const rewardsOf = (task: readonly EvaluationRollout[]) => task.flatMap(({ episode }) => episode?.reward ?? [])

function toTaskMean(values: readonly number[]): TaskMean {
  const { mean, interval } = meanWithInterval(values)
  return { value: mean, interval, tasks: values.length }
}

/** The mean if each rollout without an outcome had the least reward, and if it had the greatest: 0 and 1, or what was seen beyond them. */
function boundsOf(tasks: readonly (readonly EvaluationRollout[])[]): [number, number] {
  const seen = tasks.flatMap(rewardsOf)
  const least = seen.reduce((a, b) => Math.min(a, b), 0)
  const greatest = seen.reduce((a, b) => Math.max(a, b), 1)
  const filled = (value: number) =>
    meanOf(
      meansOf(
        tasks.map((task) => task.flatMap(({ episode }) => (episode === null || hasFailed(episode) ? value : (episode.reward ?? [])))),
      ),
    )
  return [filled(least), filled(greatest)]
}

/**
 * Mean reward of a task's most frequent answer; several that are equally frequent have their mean. None for a task without an answer that
 * was scored.
 */
function majorityOf(task: readonly EvaluationRollout[]): number[] {
  const votes = Map.groupBy(
    task.flatMap(({ episode }) =>
      episode?.reward == null || episode.answer === null ? [] : [{ answer: episode.answer, reward: episode.reward }],
    ),
    ({ answer }) => normalized(answer),
  )
  if (votes.size === 0) return []
  const most = Math.max(...Array.from(votes.values(), ({ length }) => length))
  return [meanOf([...votes.values()].filter(({ length }) => length === most).map((same) => meanOf(same.map(({ reward }) => reward))))]
}

/** An answer as it is counted: without case, and with white space as single blanks. */
const normalized = (answer: unknown) =>
  (typeof answer === 'string' ? answer : stableStringify(answer)).normalize('NFKC').trim().replaceAll(/\s+/gu, ' ').toLowerCase()

function mostFrequentShare(answers: readonly unknown[]): number | null {
  if (answers.length === 0) return null
  const counts = Map.groupBy(answers, normalized)
  return Math.max(...Array.from(counts.values(), ({ length }) => length)) / answers.length
}

const mostFrequentFirst = (names: readonly string[]) =>
  [...Map.groupBy(names, (name) => name)].sort((a, b) => b[1].length - a[1].length).map(([name]) => name)

const sumUsage = (usages: readonly Usage[]): Usage => ({
  promptTokens: sumOf(usages.map(({ promptTokens }) => promptTokens)),
  completionTokens: sumOf(usages.map(({ completionTokens }) => completionTokens)),
  cachedTokens: sumOf(usages.map(({ cachedTokens }) => cachedTokens)),
})
