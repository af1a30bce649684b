import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TrainError, type TrainerData, type TrainerDataset, type TrainerStart, type TrainingTask } from '@aworld-train/core'
import { drawTasks, missingKinds, type Stratify } from '@aworld-train/training'

const taskFiles = { train: 'train_tasks.jsonl', test: 'test_tasks.jsonl' } as const

const planFile = (trainer: string) => `${trainer}.json`

/** The command that runs a trainer's module of the bridge on the plan in the run directory. */
export const moduleCommand = (trainer: string, { python, bridge }: TrainerStart): string[] => [
  python,
  '-m',
  `aworld_train_bridge.${trainer}`,
  join(bridge.path, planFile(trainer)),
  '--metrics',
  bridge.metricsFile,
]

export interface PlanFilesOptions {
  /** The run directory. */
  readonly path: string
  readonly trainer: string
  readonly data: TrainerData
  /** Ids of all tasks to train, in the order of drawing; `null` leaves the order to the framework. */
  order(tasks: readonly TrainingTask[]): readonly string[] | null
  /** What the framework's module reads beside {tasks, order}. */
  readonly plan: Readonly<Record<string, unknown>>
}

/** Writes the plan for a framework's module, and its tasks; each file appears whole. Returns the names of the files. */
export async function writePlanFiles({ path, trainer, data: { train, test }, order, plan }: PlanFilesOptions): Promise<string[]> {
  await mkdir(path, { recursive: true })
  const tasks = { train: join(path, taskFiles.train), test: test && join(path, taskFiles.test) }
  const written = { ...plan, tasks, order: train && order(train.tasks) }
  const texts: [string, string][] = [[planFile(trainer), `${JSON.stringify(written, null, 2)}\n`]]
  if (train) texts.push([taskFiles.train, taskLines(train)])
  if (test) texts.push([taskFiles.test, taskLines(test)])
  for (const [name, text] of texts) {
    const temporary = join(path, `${name}.${process.pid}.tmp`)
    await writeFile(temporary, text)
    await rename(temporary, join(path, name))
  }
  return texts.map(([name]) => name)
}

/** The tasks as lines of {id, row}. A row is as the channel carries it, without its answer. */
function taskLines({ tasks }: TrainerDataset): string {
  return tasks
    .map(({ id, input, dataSource }, index) => {
      const prompt = typeof input === 'string' ? [{ role: 'user', content: input }] : input
      return `${JSON.stringify({ id, row: { prompt, dataSource, rewardModel: null, extraInfo: { id }, index, columns: { id } } })}\n`
    })
    .join('')
}

export interface DrawnOrderOptions {
  readonly batches: number
  readonly promptsPerBatch: number
  readonly seed: number
  readonly stratify: Stratify | null
}

/** Ids of the tasks, one batch after the other, the same for every start. Throws CONFIG_INVALID if a kind has no task. */
export function drawnOrder(tasks: readonly TrainingTask[], { batches, promptsPerBatch, seed, stratify }: DrawnOrderOptions): string[] {
  const missing = stratify === null ? [] : missingKinds(tasks, stratify)
  if (missing.length > 0)
    throw new TrainError(
      'CONFIG_INVALID',
      `training.stratify counts tasks whose ${stratify?.key} is ${missing.join(', ')}, and there are none.`,
    )
  return Array.from({ length: batches }, (_, index) =>
    drawTasks(tasks, { seed, step: index + 1, promptsPerStep: promptsPerBatch, stratify }),
  ).flatMap((drawn) => drawn.map(({ id }) => id))
}
