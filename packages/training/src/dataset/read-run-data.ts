import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { AnswerKey, TrainingTask } from '@aworld-train/core'
import { loadDataset } from './load-dataset.ts'

export interface RunData {
  /** Tasks by their id. */
  readonly tasks: ReadonlyMap<string, TrainingTask>
  /** Answers by task id. */
  readonly answers: ReadonlyMap<string, AnswerKey>
}

/** Reads the tasks and answers of a run from the data files in its folder. */
export async function readRunData(path: string): Promise<RunData> {
  const files = ['train_data.parquet', 'validation_data.parquet', 'test_data.parquet']
    .map((name) => join(path, name))
    .filter((file) => existsSync(file))
  const parts = await Promise.all(files.map((file) => loadDataset(file, { answers: 'optional', filesDirectory: null })))
  return {
    tasks: new Map(parts.flatMap(({ tasks }) => tasks.map((task) => [task.id, task] as const))),
    answers: new Map(parts.flatMap(({ answers }) => [...answers])),
  }
}
