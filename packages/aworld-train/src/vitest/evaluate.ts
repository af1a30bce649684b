import type { Episode, InferenceReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import type { DatasetSource } from '@aworld-train/training'
import { AgentTrainer } from '../agent-trainer.ts'
import type { TrainingDefinition } from '../training-definition.ts'

export interface EvaluateOptions {
  /** Dataset to evaluate on. Default: the test set of the training. */
  readonly dataset?: DatasetSource | undefined
  /** Folder of the model to sample. Default: the configured one. */
  readonly model?: string | undefined
  /** Rollouts of each task. Default: `evaluation.samplesPerPrompt` of the configuration. */
  readonly samples?: number | undefined
  readonly seed?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** The report of an evaluation, and its episodes. Episodes of one task have the same `group`. */
export interface EvaluationWithEpisodes extends InferenceReport {
  readonly episodes: readonly Episode[]
}

/** Runs the agent of a training over its test set with the policy as it is, as `aworld-train eval` does, in a run directory of its own. */
export async function evaluate(training: TrainingDefinition, options: EvaluateOptions = {}): Promise<EvaluationWithEpisodes> {
  const { dataset, model, samples, seed, signal } = options
  const { onEvent = () => {}, ...definition } = training
  const trainer = new AgentTrainer({
    ...definition,
    onEvent,
    ...(model !== undefined && { model }),
    ...(samples !== undefined && { samples }),
    ...(seed !== undefined && { seed }),
    trainEngineName: 'local',
  })
  const report = await trainer.inference(dataset, signal)
  const run = readRun(report.path)
  try {
    return { ...report, episodes: [...run.episodes()] }
  } finally {
    run.close()
  }
}
