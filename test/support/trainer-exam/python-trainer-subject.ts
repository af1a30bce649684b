import { existsSync, statSync } from 'node:fs'
import { mkdtemp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isRecord, type RunReport } from '@aworld-train/core'
import {
  createTrainerExam,
  type Refusal,
  type TrainedBatch,
  type TrainedRun,
  type TrainerExam,
  type TrainerSubject,
  type TrainOptions,
} from '@aworld-train/testing'
import { examModel, readBatches, readTrainedRun, trainExam } from './train-exam.ts'
import { trainKilled } from './train-killed.ts'

export interface WrongConfiguration {
  /** Keys and sections that win over those of the exam. */
  readonly change: object
  readonly message: RegExp
}

export interface PythonTrainerSubjectOptions extends Pick<TrainedRun, 'replacesGroups'> {
  readonly trainEngineName: string
  /** The framework's interpreter. */
  readonly python: string
  /** Folder for the runs, which the caller removes. */
  readonly folder: string
  /** The framework's configuration: all tasks in every step, one update a step, a checkpoint of every step, no weight decay, no clipping. */
  config(exam: TrainerExam, options: TrainOptions): object
  /** Folder in the form of Hugging Face with the weights after a step, such as its checkpoint; `null` if there is none. */
  weights(runPath: string, step: number): Promise<string | null> | string | null
  /** An error in the configuration, and the pattern that the message must match; a sentence if the error is impossible with it. */
  readonly wrong?: Readonly<Partial<Record<'unknownKey' | 'groupOfOne' | 'allRows', WrongConfiguration | string>>> | undefined
}

/** How a framework of Python sits the exam: trained as a user would, with its batches recorded by the bridge. */
export function pythonTrainerSubject({
  trainEngineName,
  python,
  folder,
  config,
  weights,
  wrong = {},
  replacesGroups,
}: PythonTrainerSubjectOptions) {
  process.env['AWORLD_TRAIN_PYTHON'] = python
  process.env['AWORLD_TRAIN_BATCHES'] = '1'

  async function toTraining(exam: TrainerExam, options: TrainOptions) {
    const runPath = await mkdtemp(join(folder, 'run-'))
    return { trainEngineName, config: config(exam, options), runPath, steps: options.steps }
  }

  async function read(report: RunReport): Promise<TrainedRun> {
    const folders: (string | null)[] = [examModel]
    for (let step = 1; step <= report.curve.length; step++) folders.push(await weights(report.path, step))
    return { ...(await readTrainedRun(report, await readBatches(await batchFiles(report.path)), folders)), replacesGroups }
  }

  /** Starts a training with a changed configuration. Its keys and sections win over those of the exam. */
  async function trainChanged(change: object) {
    const exam = createTrainerExam()
    const training = await toTraining(exam, { steps: 1 })
    return await trainExam(exam, { ...training, config: merged(training.config, change) })
  }

  const refusal = (each: WrongConfiguration | string = `test/trainers/${trainEngineName} has a test of its own`): Refusal | string =>
    typeof each === 'string' ? each : { code: 'CONFIG_INVALID', message: each.message, train: () => trainChanged(each.change) }

  return {
    refusals: {
      unknownKey: refusal(wrong.unknownKey),
      groupOfOne: refusal(wrong.groupOfOne),
      allRows: refusal(wrong.allRows),
      missingPackage: {
        code: 'TRAINER_ENVIRONMENT',
        message: /setup/,
        async train() {
          process.env['AWORLD_TRAIN_PYTHON'] = 'python3'
          try {
            return await trainChanged({})
          } finally {
            process.env['AWORLD_TRAIN_PYTHON'] = python
          }
        },
      },
      unreachable: 'the framework is a process of this machine',
    },
    async train(exam, options) {
      const run = await read(await trainExam(exam, await toTraining(exam, options)))
      return options.microBatches === undefined ? run : { ...run, batches: wholeBatches(run.batches) }
    },
    async trainKilled(exam, options) {
      const training = await toTraining(exam, options)
      return await read(await trainKilled(() => training))
    },
  } satisfies Pick<TrainerSubject, 'train' | 'trainKilled' | 'refusals'>
}

/** Joins batches of which each micro-batch was recorded by itself, with its part of the loss. */
const wholeBatches = (parts: readonly TrainedBatch[]): TrainedBatch[] =>
  [...Map.groupBy(parts, ({ step }) => step)].map(([step, batches]) => ({
    step,
    loss: batches.reduce((sum, { loss }) => sum + loss!, 0),
    rows: batches.flatMap(({ rows }) => rows),
  }))

function merged(config: object, change: object): object {
  const entries = Object.entries(change).map(([key, value]) => {
    const before = (config as Readonly<Record<string, unknown>>)[key]
    return [key, isRecord(value) && isRecord(before) ? merged(before, value) : value]
  })
  return { ...config, ...Object.fromEntries(entries) }
}

/** The bridge's records in a run directory, with the starts in their order. */
async function batchFiles(path: string): Promise<string[]> {
  const ledger = join(path, 'ledger')
  if (!existsSync(ledger)) return []
  const files = (await readdir(ledger, { recursive: true }))
    .filter((file) => /batches-\d+\.jsonl$/.test(file))
    .map((file) => join(ledger, file))
  return files.sort((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs)
}
