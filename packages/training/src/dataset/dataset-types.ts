import type { AnswerKey, TrainingTask } from '@aworld-train/protocol'

export type DatasetRow = Readonly<Record<string, unknown>>

/**
 * A path (.jsonl .json .csv .parquet, the texts also as .gz; a folder saved by Hugging Face datasets, or one of shards), several paths,
 * rows, or an async iterable of rows.
 */
export type DatasetSource = string | readonly string[] | readonly DatasetRow[] | AsyncIterable<DatasetRow>

export interface LoadDatasetOptions {
  /** Prefix of generated task ids, and the split shown in messages. */
  readonly split?: 'train' | 'test' | 'validation' | (string & {}) | undefined
  /** Column of the prompt; `prompt`, `question`, `input`, … are found by themselves. */
  readonly promptKey?: string | undefined
  /** A row without an answer is a problem (default), or allowed. */
  readonly answers?: 'required' | 'optional' | undefined
  /**
   * Folder that holds the files of rows in memory; the working directory by default. Those of a dataset on disk lie in its folder.
   * `null` takes the paths of all files as they stand, wherever they lead.
   */
  readonly filesDirectory?: string | null | undefined
  /** How many problems are collected; 20 by default. The last one says how many more there are. */
  readonly maxProblems?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface DatasetProblem {
  readonly file: string
  /** 1-based number of the row (in .jsonl the line); `null` for a problem of the whole file. */
  readonly row: number | null
  readonly column: string | null
  /** The whole sentence: where, what, and what to do. */
  readonly message: string
}

export interface LoadedDataset {
  readonly tasks: TrainingTask[]
  /** By task id. */
  readonly answers: Map<string, AnswerKey>
  readonly problems: readonly DatasetProblem[]
  /** Sentences about how columns are used. */
  readonly notes: readonly string[]
  /** Sentences about columns that are probably meant otherwise than they are used. */
  readonly warnings: readonly string[]
}
