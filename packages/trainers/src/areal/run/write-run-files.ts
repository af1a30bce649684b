import { join } from 'node:path'
import type { TrainerData } from '@aworld-train/core'
import { numberAt } from '@aworld-train/training'
import { drawnOrder, writePlanFiles } from '../../shared/training/write-plan-files.ts'
import type { ArealPlan } from '../config/areal-config.ts'

/** Writes the files that `python -m aworld_train_bridge.areal` reads. */
export async function writeRunFiles(plan: ArealPlan, data: TrainerData): Promise<string[]> {
  const { path, model, fields, stratify, steps, seed, drawn, evaluation, before, passes, limits, logprobTolerance, checkpoints } = plan
  const { samples, temperature } = evaluation
  return await writePlanFiles({
    path,
    trainer: 'areal',
    data,
    order: (tasks) =>
      drawn && steps !== null
        ? drawnOrder(tasks, { batches: steps, promptsPerBatch: numberAt(fields, 'train_dataset.batch_size', 1), seed, stratify })
        : null,
    plan: {
      model,
      configuration: fields,
      evaluation: { samples, temperature, before },
      passes,
      limits,
      logprobTolerance,
      templateArguments: plan.templateArguments,
      deadlineSeconds: plan.deadlineSeconds,
      checkpoints,
      keepCheckpoints: plan.keepCheckpoints,
      path: join(path, 'areal'),
    },
  })
}
