import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DrivenData, DrivenDataset } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { drawTasks, missingKinds } from '@aworld-train/training'
import { generationOf } from '../config/generation-of.ts'
import type { SwiftPlan } from '../config/swift-config.ts'

/** Names of the files in a run directory. */
export const runFiles = { plan: 'swift.json', train: 'train_tasks.jsonl', test: 'test_tasks.jsonl' } as const

/** Writes what `python -m aworld_train_bridge.swift` reads; each file appears whole. Returns the names written. */
export async function writeRunFiles(plan: SwiftPlan, { train, test }: DrivenData): Promise<string[]> {
  const { path, model, fields, evaluation, limits, logprobTolerance, checkpoints, templateArguments, deadlineSeconds } = plan
  const { samples, temperature } = evaluation
  await mkdir(path, { recursive: true })
  const written = {
    model,
    configuration: fields,
    tasks: { train: join(path, runFiles.train), test: test && join(path, runFiles.test) },
    order: train && orderOf(plan, train),
    evaluation: { samples, sampling: { temperature } },
    maxPromptTokens: limits.maxPromptTokens,
    logprobTolerance,
    templateArguments,
    deadlineSeconds,
    checkpoints,
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

/** Ids of all tasks that are trained, as they are drawn for one generation after the other; `null` leaves it to ms-swift. */
function orderOf({ stratify, steps, fields, seed }: SwiftPlan, { tasks }: DrivenDataset): string[] | null {
  if (stratify === null || steps === null) return null
  const missing = missingKinds(tasks, stratify)
  if (missing.length > 0)
    throw new TrainError(
      'CONFIG_INVALID',
      `training.stratify counts tasks whose ${stratify.key} is ${missing.join(', ')}, and there are none.`,
    )
  const { prompts, updates } = generationOf(fields)
  return Array.from({ length: Math.ceil(steps / updates) }, (_, index) =>
    drawTasks(tasks, { seed, step: index + 1, promptsPerStep: prompts, stratify }),
  ).flatMap((drawn) => drawn.map(({ id }) => id))
}
