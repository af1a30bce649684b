import { TrainError, type TrainerConfig } from '@aworld-train/core'
import type { DatasetSource, LoadedDataset } from '../dataset/dataset-types.ts'
import type { ProblemCollection } from '../preflight/collect-problems.ts'
import { datasetFindings, type Findings, loadNamedDataset, type NamedDataset, requireKinds } from './named-dataset.ts'

type Splits<Value> = Readonly<Record<'train' | 'test' | 'validation', Value>>

export interface DatasetsCheck extends Pick<NamedDataset, 'baseDirectory' | 'configDirectory'> {
  /** The datasets of the options. */
  readonly datasets: Partial<Splits<DatasetSource | undefined>>
  /** What the configuration names, and whether it could be read as far as it does. */
  readonly names: Pick<TrainerConfig['names'], 'trainFiles' | 'testFiles' | 'promptKey'>
  readonly isRead: boolean
  /** The key of the files to train on, for messages. */
  readonly trainFilesKey: string
  /** Column that results are split by. */
  readonly kindKey: string | null
}

/** Loads the datasets of a training and adds their problems. One that nobody names is `null`, and one with a problem `undefined`. */
export async function checkDatasets(
  { attempt, add }: ProblemCollection,
  { datasets, names, isRead, trainFilesKey, kindKey, ...directories }: DatasetsCheck,
): Promise<Splits<LoadedDataset | null | undefined> & { readonly findings: Findings }> {
  const { promptKey } = names
  const load = (split: keyof typeof datasets, files: readonly string[]) =>
    attempt(() => loadNamedDataset({ ...directories, option: `${split}Dataset`, dataset: datasets[split], files, split, promptKey }))
  const train = await load('train', names.trainFiles)
  const test = await load('test', names.testFiles)
  const validation = await load('validation', [])
  if (isRead && train === null)
    add(new TrainError('DATASET_INVALID', `There is no training data; pass trainDataset, or name files in ${trainFilesKey}.`))
  await attempt(() => requireKinds(kindKey, test, validation))
  return { train, test, validation, findings: datasetFindings(train, test, validation) }
}
