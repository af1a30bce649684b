import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DrivenData, DrivenDataset } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { drawTasks, missingKinds } from '@aworld-train/training'
import { type ArealPlan, numberAt } from '../config/areal-config.ts'

/** Names of the files in a run directory. */
export const runFiles = { plan: 'areal.json', train: 'train_tasks.jsonl', test: 'test_tasks.jsonl' } as const

/** Writes what `python -m aworld_train_bridge.areal` reads; each file appears whole. Returns the names written. */
export async function writeRunFiles(plan: ArealPlan, { train, test }: DrivenData): Promise<string[]> {
  const { path, model, fields, evaluation, before, passes, limits, logprobTolerance, checkpoints, templateArguments, deadlineSeconds } =
    plan
  const { samples, temperature } = evaluation
  await mkdir(path, { recursive: true })
  const written = {
    model,
    configuration: fields,
    tasks: { train: join(path, runFiles.train), test: test && join(path, runFiles.test) },
    order: train && orderOf(plan, train),
    evaluation: { samples, temperature, before },
    passes,
    limits,
    logprobTolerance,
    templateArguments,
    deadlineSeconds,
    checkpoints,
    path: join(path, 'areal'),
  }
  const texts: [string, string][] = [[runFiles.plan, `${JSON.stringify(written, null, 2)}\n`]]
  if (train) texts.push([runFiles.train, taskLines(train)])
  if (test) texts.push([runFiles.test, taskLines(test)])
  for (const [name, text] of texts) {
    const temporary = join(path, `${name}.${process.pid}.tmp`)
    await writeFile(temporary, text)
    await rename(temporary, join(path, name))
  }
  return texts.map(([name]) => name)
}

/** A task a line as {id, row}: the row as the channel carries it, its answer aside. */
function taskLines({ tasks }: DrivenDataset): string {
  return tasks
    .map(({ id, input, dataSource }, index) => {
      const prompt = typeof input === 'string' ? [{ role: 'user', content: input }] : input
      return `${JSON.stringify({ id, row: { prompt, dataSource, rewardModel: null, extraInfo: { id }, index, columns: { id } } })}\n`
    })
    .join('')
}

/** Ids of all tasks that are trained, as they are drawn for one step after the other; `null` leaves it to AReaL. */
function orderOf({ stratify, steps, fields, seed, drawn }: ArealPlan, { tasks }: DrivenDataset): string[] | null {
  if (!drawn || steps === null) return null
  const missing = stratify === null ? [] : missingKinds(tasks, stratify)
  if (missing.length > 0)
    throw new TrainError(
      'CONFIG_INVALID',
      `training.stratify counts tasks whose ${stratify?.key} is ${missing.join(', ')}, and there are none.`,
    )
  const promptsPerStep = numberAt(fields, 'train_dataset.batch_size', 1)
  return Array.from({ length: steps }, (_, index) => drawTasks(tasks, { seed, step: index + 1, promptsPerStep, stratify })).flatMap(
    (drawnTasks) => drawnTasks.map(({ id }) => id),
  )
}
