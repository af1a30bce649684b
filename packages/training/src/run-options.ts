import type { RunEvent } from '@aworld-train/core'

/** Options of a run beside the five modules of AgentTrainer. */
export interface RunOptions {
  /** Folder that relative paths are resolved from; the working directory by default. */
  readonly baseDirectory?: string | undefined
  /** First part of the run's folder name; the name of the first trainable agent by default. */
  readonly name?: string | undefined
  /** Starts a new run even if an unfinished one of equal configuration exists. */
  readonly fresh?: boolean | undefined
  /** Name or path of the run to resume. */
  readonly resume?: string | undefined
  /** Makes the starting model with `model.warmUp` instead of reading `model.path`. */
  readonly fromScratch?: boolean | undefined
  /** Overrides of the configuration; `model` is a model folder, `samples` the rollouts of each task in inference. */
  readonly model?: string | undefined
  readonly samples?: number | undefined
  /** A folder that a learner saved. Inference samples its weights in place of the model's; it is for weights that are held by a service. */
  readonly checkpoint?: string | undefined
  readonly seed?: number | undefined
  readonly steps?: number | undefined
  /** Tasks that choose the best checkpoint. The test set never does. */
  readonly validationDataset?: unknown
  /** Called with every event. By default, lines about the events go to stderr; `() => {}` is silent. */
  readonly onEvent?: ((event: RunEvent) => void) | undefined
}
