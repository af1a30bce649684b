import type { Episode, EvaluationResult, Sampling } from '@aworld-train/protocol'
import { parseChannelKey } from '@aworld-train/protocol'
import { type LoadedDataset, summarizeTasks } from '@aworld-train/training'

export interface DrivenEvaluationsOptions {
  /** Episodes of the split `test`. */
  readonly episodes: Iterable<Episode>
  /** The evaluations that the framework finished, in the order of its starts; others lack rollouts because it ended. */
  readonly evaluatedSteps: readonly { readonly incarnation: string; readonly step: number }[]
  readonly test: LoadedDataset
  /** Samples of each task in one evaluation. */
  readonly samples: number
  readonly sampling: Sampling
  readonly kindKey: string | null
}

/**
 * The evaluations of a framework as this side scored them, one a step, in their order; of a step that two starts evaluated the
 * later one. A rollout without a result counts as failed with reward 0, as frameworks count it.
 */
export function drivenEvaluations({
  episodes,
  evaluatedSteps,
  test,
  samples,
  sampling,
  kindKey,
}: DrivenEvaluationsOptions): EvaluationResult[] {
  const order = new Map(evaluatedSteps.map(({ incarnation, step }, index) => [`${incarnation}/${step}`, index]))
  const byStep = new Map<number, { index: number; byTask: Map<string, Episode[]> }>()
  for (const episode of episodes) {
    const key = parseChannelKey(episode.rollout)
    const index = key && order.get(`${key.incarnation}/${key.step}`)
    if (!key || index === undefined || index === null || key.partition !== 'val') continue
    let found = byStep.get(key.step)
    if (found && found.index > index) continue
    if (!found || found.index < index) {
      found = { index, byTask: new Map() }
      byStep.set(key.step, found)
    }
    const ofTask = found.byTask.get(episode.taskId) ?? []
    found.byTask.set(episode.taskId, [...ofTask, episode])
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
