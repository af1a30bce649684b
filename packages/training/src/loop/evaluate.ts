import {
  countFailures,
  describeFailure,
  type EndedRollout,
  type Episode,
  type ErrorCode,
  type EvaluationResult,
  isFailed,
  isInfrastructureFailure,
  isUnscored,
  meanWithInterval,
  type RolloutLimits,
  type RolloutRequest,
  type Sampling,
  TrainError,
  type TrainingTask,
  toEndedRollout,
} from '@aworld-train/core'
import { kindOf } from '../dataset/task-column.ts'

export interface EvaluationPlan {
  /** Name of the evaluation. It is displayed, and part of every rollout's key. */
  readonly name: string
  readonly split: string
  readonly step: number
  readonly tasks: readonly TrainingTask[]
  readonly sampling: Sampling
  readonly samplesPerPrompt: number
  readonly policy: string
  readonly limits: RolloutLimits
  /** Column that names a task's kind; `null` takes the data source. */
  readonly kindKey: string | null
}

/**
 * The rollouts of an evaluation. Random numbers depend only on task, sample number and sampling, so two evaluations that share these are
 * comparable.
 */
export function evaluationRequests({
  name,
  split,
  step,
  tasks,
  sampling,
  samplesPerPrompt,
  policy,
  limits,
  kindKey,
}: EvaluationPlan): RolloutRequest[] {
  return tasks.flatMap((task, position) =>
    Array.from({ length: samplesPerPrompt }, (_, sample) => ({
      version: 1 as const,
      key: `evaluation/${name}/${position}/${sample}`,
      task,
      group: `evaluation/${name}/${position}`,
      sample,
      split,
      step,
      kind: kindOf(task, kindKey),
      policy,
      sampling,
      limits,
    })),
  )
}

/** Summarizes episodes in the order of `evaluationRequests`, as `summarizeTasks` does. */
export function summarizeEvaluation(plan: EvaluationPlan, episodes: readonly Episode[]): EvaluationResult {
  const { tasks, samplesPerPrompt } = plan
  const groups = tasks.map((task, position) => ({
    task,
    episodes: episodes.slice(position * samplesPerPrompt, (position + 1) * samplesPerPrompt).map(toEndedRollout),
  }))
  return summarizeTasks(plan, groups)
}

/**
 * Throws the first failure if the infrastructure failed all rollouts, because there is no mean. The next process of the run makes the
 * evaluation.
 */
export function requireOutcome(name: string, episodes: readonly Episode[]): void {
  const first = episodes[0]?.error
  if (!first || !episodes.every(isInfrastructureFailure)) return
  const message = `None of the ${episodes.length} rollouts of the evaluation "${name}" has an outcome. The first: ${first.message}`
  throw new TrainError(first.code as ErrorCode, message, { details: { name } })
}

/** The metrics of the event at the end of an evaluation. */
export function evaluationMetrics({
  reward,
  interval,
  tasks,
  rollouts,
  failed,
  unscored,
  counted,
}: EvaluationResult): Record<string, number> {
  return {
    reward,
    low: interval[0],
    high: interval[1],
    tasks,
    rollouts,
    failed,
    ...(unscored > 0 && { unscored }),
    ...(counted && { countedTasks: counted.tasks, countedRollouts: counted.rollouts }),
  }
}

/** Throws EVALUATION_FAILED if every rollout failed: a mean of nothing says nothing about the policy. */
export function requireResults({
  name,
  rollouts,
  failed,
  failures,
}: Pick<EvaluationResult, 'name' | 'rollouts' | 'failed' | 'failures'>): void {
  if (rollouts === 0 || failed < rollouts) return
  const why = failures.map((failure) => `\n  - ${describeFailure(failure)}`).join('')
  throw new TrainError('EVALUATION_FAILED', `All ${rollouts} rollouts of the evaluation "${name}" failed:${why}`, {
    details: { name, failures },
  })
}

/** A task and its rollouts in an evaluation. `null` is a rollout without a result. */
export interface EvaluatedTask {
  readonly task: TrainingTask
  readonly episodes: readonly (EndedRollout | null)[]
}

type Summarized = Pick<EvaluationPlan, 'name' | 'step' | 'sampling' | 'kindKey'>

/**
 * Summarizes an evaluation by its mean reward over tasks. A rollout that the infrastructure failed, or that has no result, counts as failed
 * and is in no mean. One whose reward abstained is in no mean. Any other rollout without a reward counts as 0.
 */
export function summarizeTasks(plan: Summarized, groups: readonly EvaluatedTask[]): EvaluationResult {
  const counted = groups
    .map(({ task, episodes }) => ({
      task,
      episodes: episodes.filter((each) => each !== null).filter((each) => !isInfrastructureFailure(each)),
    }))
    .filter(({ episodes }) => episodes.length > 0)
  const result = summarizeCounted(plan, counted)
  const all = groups.flatMap(({ episodes }) => episodes)
  if (all.length === result.rollouts) return result
  return {
    ...result,
    tasks: groups.length,
    rollouts: all.length,
    failed: result.failed + all.length - result.rollouts,
    failures: countFailures(all.filter((episode) => episode !== null)),
    counted: { tasks: counted.length, rollouts: result.rollouts },
  }
}

function summarizeCounted(
  plan: Summarized,
  groups: readonly { readonly task: TrainingTask; readonly episodes: readonly EndedRollout[] }[],
): EvaluationResult {
  const { kindKey } = plan
  const perTask: number[] = []
  const kinds = new Map<string, number[]>()
  for (const { task, episodes } of groups) {
    const rewards = episodes.filter((episode) => !isUnscored(episode)).map(({ reward }) => reward ?? 0)
    if (rewards.length > 0) perTask.push(rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length)
    const kind = kindOf(task, kindKey)
    const ofKind = kinds.get(kind) ?? []
    ofKind.push(...rewards)
    kinds.set(kind, ofKind)
  }
  const { mean, interval } = meanWithInterval(perTask)
  const all = groups.flatMap(({ episodes }) => episodes)
  return {
    name: plan.name,
    step: plan.step,
    tasks: groups.length,
    rollouts: all.length,
    failed: all.filter(isFailed).length,
    unscored: all.filter(isUnscored).length,
    failures: countFailures(all),
    reward: mean,
    interval,
    sampling: plan.sampling,
    byKind: Object.fromEntries(
      [...kinds].map(([kind, rewards]) => [
        kind,
        { rollouts: rewards.length, reward: rewards.reduce((sum, reward) => sum + reward, 0) / Math.max(1, rewards.length) },
      ]),
    ),
  }
}
