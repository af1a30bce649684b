import type { Episode, EvaluationWithResults } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import type { DatasetSource } from '@aworld-train/training'
import { type RunEvaluationOptions, runEvaluation } from '../evaluation/run-evaluation.ts'
import type { TrainingDefinition } from '../training-definition.ts'

/** The parts of a training that an evaluation needs; a `defineTraining` has them. */
export type EvaluatedTraining = Pick<
  TrainingDefinition,
  | 'agent'
  | 'testDataset'
  | 'rewardFunc'
  | 'config'
  | 'baseDirectory'
  | 'runPath'
  | 'name'
  | 'onEvent'
  | 'trainEngineName'
  | 'model'
  | 'samples'
  | 'seed'
>

export interface EvaluateOptions
  extends Pick<RunEvaluationOptions, 'model' | 'samples' | 'seed' | 'kindKey' | 'price' | 'dialect' | 'apiKeyEnv' | 'exactModel'> {
  /** Dataset to evaluate on. Default: the test set of the training. */
  readonly dataset?: DatasetSource | undefined
  /** File of the model's answers. They are recorded if it does not exist, and replayed without key or network if it does. */
  readonly cassette?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** An evaluation with its episodes. Episodes of one task have the same `group`. */
export interface EvaluationWithEpisodes extends EvaluationWithResults {
  readonly episodes: readonly Episode[]
}

/** Runs the agent of a training over its test set with a model as it is, as `aworld-train eval` does, in a run directory of its own. */
export async function evaluate(training: EvaluatedTraining, options: EvaluateOptions = {}): Promise<EvaluationWithEpisodes> {
  const { signal, dataset = training.testDataset, ...flags } = options
  const { agent, rewardFunc, config, baseDirectory, runPath, name, onEvent = () => {}, trainEngineName, model, samples, seed } = training
  const settings = { agent, rewardFunc, config, baseDirectory, runPath, name, onEvent, model, samples, seed }
  const set = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
  const report = await runEvaluation({ ...settings, dataset, atTinker: trainEngineName === 'tinker', fresh: true, ...set }, signal)
  const run = readRun(report.path)
  try {
    return { ...report, episodes: [...run.episodes()] }
  } finally {
    run.close()
  }
}
