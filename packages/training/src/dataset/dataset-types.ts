import type { AnswerKey, TrainingTask } from '@aworld-train/core'

export type DatasetRow = Readonly<Record<string, unknown>>

/**
 * A path (.jsonl .json .csv .parquet, the texts also as .gz; a folder saved by Hugging Face datasets, a folder of shards, or one of tasks in
 * Harbor's form), several paths, rows, or an async iterable of rows.
 */
export type DatasetSource = string | readonly string[] | readonly DatasetRow[] | AsyncIterable<DatasetRow>

export interface LoadDatasetOptions {
  /** Prefix of generated task ids. It is also the split in messages. */
  readonly split?: 'train' | 'test' | 'validation' | (string & {}) | undefined
  /** Column of the prompt. `prompt`, `question`, `input`, … are found without it. */
  readonly promptKey?: string | undefined
  /** A row without an answer is a problem (default), or allowed. */
  readonly answers?: 'required' | 'optional' | undefined
  /**
   * Folder with the files of rows in memory; the working directory by default. Files of a dataset on disk are in its folder. `null` takes
   * all paths as they are, wherever they lead.
   */
  readonly filesDirectory?: string | null | undefined
  /** Most problems that are collected; 20 by default. The last one gives the number of the others. */
  readonly maxProblems?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface DatasetProblem {
  readonly file: string
  /** 1-based number of the row (in .jsonl the line); `null` for a problem of the whole file. */
  readonly row: number | null
  readonly column: string | null
  /** The whole sentence: the place, the problem, and the remedy. */
  readonly message: string
}

export interface LoadedDataset {
  readonly tasks: TrainingTask[]
  /** By task id. */
  readonly answers: Map<string, AnswerKey>
  readonly problems: readonly DatasetProblem[]
  /** Sentences about how columns are used. */
  readonly notes: readonly string[]
  /** Sentences about columns that probably mean something else than their use here. */
  readonly warnings: readonly string[]
}
