import {
  countFailures,
  describeFailure,
  type EndedRollout,
  isFailed,
  isUnscored,
  meanWithInterval,
  toEndedRollout,
} from '@aworld-train/core'
import {
  type Episode,
  type EvaluationResult,
  type RolloutLimits,
  type RolloutRequest,
  type Sampling,
  TrainError,
  type TrainingTask,
} from '@aworld-train/protocol'
import { kindOf } from '../dataset/task-column.ts'

export interface EvaluationPlan {
  /** Name of the evaluation: it is displayed, and part of every rollout's key. */
  readonly name: string
  readonly split: string
  readonly step: number
  readonly tasks: readonly TrainingTask[]
  readonly sampling: Sampling
  readonly samplesPerPrompt: number
  readonly policy: string
  readonly limits: RolloutLimits
  /** Column of the rows that names a task's kind; `null` takes the data source. */
  readonly kindKey: string | null
}

/** The rollouts of an evaluation. Random numbers depend on task, sample number and sampling only, so two evaluations that share these are comparable. */
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

/** Mean reward of episodes in the order of `evaluationRequests`; a failed one counts as 0, one whose reward abstained not at all. */
export function summarizeEvaluation(plan: EvaluationPlan, episodes: readonly Episode[]): EvaluationResult {
  const { tasks, samplesPerPrompt } = plan
  const groups = tasks.map((task, position) => ({
    task,
    episodes: episodes.slice(position * samplesPerPrompt, (position + 1) * samplesPerPrompt).map(toEndedRollout),
  }))
  return summarizeTasks(plan, groups)
}

/** The event at the end of an evaluation. */
export function evaluationMetrics({ reward, interval, tasks, rollouts, failed, unscored }: EvaluationResult): Record<string, number> {
  return { reward, low: interval[0], high: interval[1], tasks, rollouts, failed, ...(unscored > 0 && { unscored }) }
}

/** Throws EVALUATION_FAILED where every rollout failed: a mean of nothing says nothing of the policy. */
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

/** A task and its rollouts in an evaluation; `null` stands for a rollout without a result. */
export interface EvaluatedTask {
  readonly task: TrainingTask
  readonly episodes: readonly (EndedRollout | null)[]
}

/** Mean reward over tasks; a rollout without a result counts as 0 and as failed, one whose reward abstained is in no mean. */
export function summarizeTasks(
  plan: Pick<EvaluationPlan, 'name' | 'step' | 'sampling' | 'kindKey'>,
  groups: readonly EvaluatedTask[],
): EvaluationResult {
  const { kindKey } = plan
  const perTask: number[] = []
  const kinds = new Map<string, number[]>()
  for (const { task, episodes } of groups) {
    const rewards = episodes.filter((episode) => episode === null || !isUnscored(episode)).map((episode) => episode?.reward ?? 0)
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
    failed: all.filter((episode) => episode === null || isFailed(episode)).length,
    unscored: all.filter((episode) => episode !== null && isUnscored(episode)).length,
    failures: countFailures(all.filter((episode) => episode !== null)),
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
