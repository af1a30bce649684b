import { existsSync, statSync } from 'node:fs'
import { mkdtemp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/protocol'
import type { TrainedRun, TrainerExam, TrainerSubject, TrainOptions } from '@aworld-train/testing'
import { examModel, readBatches, readTrainedRun, trainExam } from './train-exam.ts'
import { trainKilled } from './train-killed.ts'

export interface DrivenSubjectOptions {
  readonly trainEngineName: string
  /** Its interpreter. */
  readonly python: string
  /** Folder for the runs, which the caller removes. */
  readonly folder: string
  /** The framework's configuration: all tasks in every step, one update a step, a checkpoint of every step, no weight decay, no clipping. */
  config(exam: TrainerExam, options: TrainOptions): object
  /** Folder in the form of Hugging Face with the weights after a step, such as its checkpoint; `null` where there is none. */
  weights(runPath: string, step: number): Promise<string | null> | string | null
}

/** How a framework of Python sits the exam: trained as a user would, with its batches recorded by the bridge. */
export function drivenSubject({ trainEngineName, python, folder, config, weights }: DrivenSubjectOptions) {
  process.env['AWORLD_TRAIN_PYTHON'] = python
  process.env['AWORLD_TRAIN_BATCHES'] = '1'

  async function toTraining(exam: TrainerExam, options: TrainOptions) {
    const runPath = await mkdtemp(join(folder, 'run-'))
    return { trainEngineName, config: config(exam, options), runPath, steps: options.steps }
  }

  async function read(report: RunReport): Promise<TrainedRun> {
    const folders: (string | null)[] = [examModel]
    for (let step = 1; step < report.curve.length; step++) folders.push(await weights(report.path, step))
    return await readTrainedRun(report, await readBatches(await batchFiles(report.path)), folders)
  }

  return {
    train: async (exam, options) => await read(await trainExam(exam, await toTraining(exam, options))),
    async trainKilled(exam, options) {
      const training = await toTraining(exam, options)
      return await read(await trainKilled(() => training))
    },
  } satisfies Pick<TrainerSubject, 'train' | 'trainKilled'>
}

/** What the bridge recorded in a run directory, the starts in their order. */
async function batchFiles(path: string): Promise<string[]> {
  const ledger = join(path, 'ledger')
  if (!existsSync(ledger)) return []
  const files = (await readdir(ledger, { recursive: true }))
    .filter((file) => /batches-\d+\.jsonl$/.test(file))
    .map((file) => join(ledger, file))
  return files.sort((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs)
}
