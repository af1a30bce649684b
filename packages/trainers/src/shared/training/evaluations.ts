import { type EndedRollout, type EvaluationResult, parseChannelKey, type RolloutRow, type Sampling } from '@aworld-train/core'
import type { OwnedRunStore } from '@aworld-train/store'
import { type EvaluatedTask, type LoadedDataset, summarizeTasks } from '@aworld-train/training'

export interface TrainerEvaluationsOptions {
  readonly store: Pick<OwnedRunStore, 'rolloutRows'>
  /** The evaluations that the framework finished, in the order of its starts. Others lack rollouts because the framework ended. */
  readonly evaluatedSteps: readonly { readonly incarnation: string; readonly step: number }[]
  readonly test: LoadedDataset
  /** Samples of each task in one evaluation. */
  readonly samples: number
  readonly sampling: Sampling
  readonly kindKey: string | null
}

/**
 * The evaluations of a framework as this side scored them, one a step, in their order. If two starts evaluated a step, the later one
 * counts. A rollout without a result counts as failed, and in no mean.
 */
export function trainerEvaluations({
  store,
  evaluatedSteps,
  test,
  samples,
  sampling,
  kindKey,
}: TrainerEvaluationsOptions): EvaluationResult[] {
  const order = new Map(evaluatedSteps.map(({ incarnation, step }, index) => [`${incarnation}/${step}`, index]))
  const byStep = new Map<number, { index: number; byTask: Map<string, EvaluatedTask['episodes'][number][]> }>()
  for (const row of testRows(store)) {
    const key = parseChannelKey(row.key)
    const index = key && order.get(`${key.incarnation}/${key.step}`)
    if (!key || index === undefined || index === null || key.partition !== 'val') continue
    let found = byStep.get(key.step)
    if (found && found.index > index) continue
    if (!found || found.index < index) {
      found = { index, byTask: new Map() }
      byStep.set(key.step, found)
    }
    const ofTask = found.byTask.get(row.taskId) ?? []
    found.byTask.set(row.taskId, [...ofTask, toEnded(row)])
  }
  return [...byStep]
    .sort(([a], [b]) => a - b)
    .map(([step, { byTask }]) => {
      const groups = test.tasks.map((task) => {
        const episodes = byTask.get(task.id) ?? []
        return { task, episodes: [...episodes, ...Array<null>(Math.max(0, samples - episodes.length)).fill(null)] }
      })
      return summarizeTasks({ name: `test after step ${step}`, step, sampling, kindKey }, groups)
    })
}

const toEnded = ({ key: rollout, reward, stopReason, error, turns }: RolloutRow): EndedRollout => ({
  rollout,
  reward,
  turns,
  stopReason: stopReason ?? 'failed',
  ...(error && { error }),
})

/** Finished rollouts of the split `test`. */
function* testRows(store: TrainerEvaluationsOptions['store']): Generator<RolloutRow> {
  for (let after: string | undefined; ; ) {
    const { rows, next } = store.rolloutRows({ split: 'test', status: 'done', limit: 2_000, after })
    yield* rows
    if (next === null) return
    after = next
  }
}
