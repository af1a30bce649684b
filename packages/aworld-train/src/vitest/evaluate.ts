import type { Episode, EvaluationWithResults } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import type { DatasetSource } from '@aworld-train/training'
import { type EvaluatedTraining, evaluationOf } from '../evaluation/evaluation-of.ts'
import { type RunEvaluationOptions, runEvaluation } from '../evaluation/run-evaluation.ts'
import type { TrainingDefinition } from '../training-definition.ts'

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
export async function evaluate(
  training: EvaluatedTraining & Pick<TrainingDefinition, 'runPath' | 'onEvent'>,
  options: EvaluateOptions = {},
): Promise<EvaluationWithEpisodes> {
  const { signal, ...flags } = options
  const { runPath, onEvent = () => {} } = training
  const set = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
  // A recording that was cut off goes on, and anything else begins anew, because functions cannot be compared.
  const fresh = flags.cassette === undefined
  const report = await runEvaluation({ ...evaluationOf(training), runPath, onEvent, fresh, ...set }, signal)
  const run = readRun(report.path)
  try {
    return { ...report, episodes: [...run.episodes()] }
  } finally {
    run.close()
  }
}
