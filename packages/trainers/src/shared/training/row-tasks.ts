import { TrainError } from '@aworld-train/core'
import type { ToTask } from '@aworld-train/rollout'
import { kindOf } from '@aworld-train/training'
import type { PythonTrainingPlan } from './training-plan.ts'

/** Maps rows of a framework to the checked tasks and answers, by the id that the run's data files carry. */
export function createRowTasks({ trainer, train, test, config }: PythonTrainingPlan): ToTask {
  const byId = new Map(
    [train, test].flatMap((dataset) => dataset?.tasks.map((task) => [task.id, { task, answers: dataset.answers }] as const) ?? []),
  )
  return ({ columns, extraInfo, index }) => {
    const id = columns?.['id'] ?? extraInfo?.['id']
    const found = typeof id === 'string' || typeof id === 'number' ? byId.get(String(id)) : undefined
    if (!found) {
      throw new TrainError(
        'ROLLOUT_INVALID',
        `${trainer.name} submitted row ${JSON.stringify(index ?? null)} with the id ${JSON.stringify(id ?? null)}, which is no task of this run; let it read the data files of the run directory.`,
      )
    }
    const { task, answers } = found
    return {
      task,
      answer: answers.get(task.id) ?? { version: 1, taskId: task.id, groundTruth: null },
      kind: kindOf(task, config.settings.evaluation.kindKey),
    }
  }
}
