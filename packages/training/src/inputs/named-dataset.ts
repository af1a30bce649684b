import { resolve } from 'node:path'
import { stableStringify, TrainError } from '@aworld-train/core'
import type { DatasetSource, LoadedDataset } from '../dataset/dataset-types.ts'
import { datasetOverlap, loadDataset } from '../dataset/load-dataset.ts'
import { pathsOf } from '../dataset/read-rows.ts'
import { requireColumn } from '../dataset/task-column.ts'

export interface NamedDataset {
  /** Name of the option, for messages. */
  readonly option: string
  readonly dataset: DatasetSource | undefined
  /** Folder that a given path is relative to. It also holds the files that rows in memory name. */
  readonly baseDirectory: string
  /** Files that the configuration names. */
  readonly files: readonly string[]
  readonly configDirectory: string
  readonly split: string
  /** Column of the prompt. */
  readonly promptKey: string
}

/**
 * Loads one dataset from an option or the files of the configuration; `null` if neither names one. Throws CONFIG_INVALID if both do and
 * differ, and DATASET_INVALID for a bad one.
 */
export async function loadNamedDataset(named: NamedDataset): Promise<LoadedDataset | null> {
  const { option, dataset, baseDirectory, configDirectory, split, promptKey } = named
  const paths = named.files.map((file) => resolve(configDirectory, file))
  if (dataset === undefined && paths.length === 0) return null
  const source = dataset && resolveSource(dataset, baseDirectory)
  if (source !== undefined && paths.length > 0 && stableStringify([source].flat()) !== stableStringify(paths)) {
    const named = pathsOf(source)?.join(', ') ?? 'an object'
    throw new TrainError(
      'CONFIG_INVALID',
      `${option} and the configuration name different data (${named} and ${paths.join(', ')}); keep one.`,
    )
  }
  const loaded = await loadDataset(source ?? paths, { split, promptKey: chosenColumn(promptKey), filesDirectory: baseDirectory })
  refuseProblems(loaded)
  return loaded
}

/** A dataset with absolute paths. */
export function resolveSource(source: DatasetSource, directory: string): DatasetSource {
  if (typeof source === 'string') return resolve(directory, source)
  return pathsOf(source)?.map((path) => resolve(directory, path)) ?? source
}

/** The column of the prompt if one was chosen; `prompt` is looked for together with its other names. */
export const chosenColumn = (promptKey: string) => (promptKey === 'prompt' ? undefined : promptKey)

/** Throws DATASET_INVALID with every problem. */
export function refuseProblems({ problems }: LoadedDataset): void {
  if (problems.length === 0) return
  throw new TrainError('DATASET_INVALID', problems.map(({ message }) => message).join('\n'), { details: { problems } })
}

type MaybeDataset = LoadedDataset | null | undefined

/** Findings of checks that are no problems: how something is read, and what may be meant otherwise. */
export interface Findings {
  readonly notes: readonly string[]
  readonly warnings: readonly string[]
}

/** Notes and warnings about datasets, each once: about columns, and about test tasks that are also trained on. */
export function datasetFindings(train: MaybeDataset, test: MaybeDataset, validation?: MaybeDataset): Findings {
  const notes = [train, test, validation].flatMap((dataset) => dataset?.notes ?? [])
  const warnings = [train, test, validation].flatMap((dataset) => dataset?.warnings ?? [])
  const overlap = train && test ? datasetOverlap(train, test) : []
  if (overlap.length > 0)
    warnings.push(
      `${overlap.length} of ${test?.tasks.length} test tasks are training tasks too, with equal prompt, answer and extra_info (the first: "${overlap[0]?.id}"); the result on them shows memory, not skill.`,
    )
  return { notes: [...new Set(notes)], warnings: [...new Set(warnings)] }
}

/** Throws CONFIG_INVALID if results are to be split by a column that none of the tasks to evaluate has. */
export function requireKinds(kindKey: string | null, ...datasets: readonly MaybeDataset[]): void {
  const tasks = datasets.flatMap((dataset) => dataset?.tasks ?? [])
  if (kindKey !== null) requireColumn(tasks, kindKey, 'evaluation.kindKey')
}
