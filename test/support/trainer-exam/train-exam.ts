import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import type { TrainedBatch, TrainedRun, TrainerExam } from '@aworld-train/testing'
import { AgentTrainer, type RunEvent } from 'aworld-train'
import { repository } from '../run-cli.ts'

/** A Qwen3 of 248,000 weights in float32 that answers questions in a few tokens. */
export const examModel = join(repository, 'examples', 'periodic-table', 'model')

export interface ExamTraining {
  readonly trainEngineName: string
  readonly config: object
  /** Parent folder of the run. It may contain no other run. */
  readonly runPath: string
  readonly steps: number
  readonly onEvent?: ((event: RunEvent) => void) | undefined
}

/** A start of a training in a process of its own; with `witness` if the trainer is one of those with a witness. */
export type ExamStart = Omit<ExamTraining, 'onEvent'> & { readonly witness?: { readonly folder: string; readonly start: string } }

/** Trains the exam as a user would. */
export async function trainExam(exam: TrainerExam, { onEvent = () => {}, ...training }: ExamTraining): Promise<RunReport> {
  const { agent, trainDataset, rewardFunc } = exam
  return await new AgentTrainer({
    ...training,
    name: 'exam',
    agent,
    trainDataset: trainDataset.map((task) => ({ ...task })),
    rewardFunc,
    baseDirectory: repository,
    onEvent,
  }).train()
}

/** Reads the run directory of a finished training. */
export async function readTrainedRun(
  { path, curve, ledger }: RunReport,
  batches: readonly TrainedBatch[],
  weights: readonly (string | null)[],
): Promise<TrainedRun> {
  const run = readRun(path)
  try {
    const rows = run.rolloutRows({ split: 'train', limit: 10_000 }).rows.filter(({ step }) => step !== null)
    return {
      episodes: rows.flatMap(({ key, step }) => {
        const episode = run.episode(key)
        return episode ? [{ step: step!, episode }] : []
      }),
      batches,
      steps: curve.map(({ step }) => step),
      ledger: ledger!,
      weights,
    }
  } finally {
    run.close()
  }
}

/**
 * Reads the batches of the completed steps from files of JSON Lines, one file for each start. For a step that was trained again it takes
 * the last.
 */
export async function readBatches(files: readonly string[]): Promise<TrainedBatch[]> {
  const steps = new Map<number, TrainedBatch[]>()
  for (const file of files.filter(existsSync)) {
    const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line.endsWith('}'))
    const ofStart = Map.groupBy(
      lines.map((line) => JSON.parse(line) as TrainedBatch),
      ({ step }) => step,
    )
    for (const [step, batches] of ofStart) steps.set(step, batches)
  }
  return [...steps.values()].flat()
}
