import type { AgentTrainerOptions } from './agent-trainer-options.ts'

/**
 * A training as a file. `aworld-train.config.ts` exports one by default, and `aworld-train train` runs it. Paths are relative to that file.
 */
export type TrainingDefinition = AgentTrainerOptions

/** Types the definition and returns it unchanged. */
export function defineTraining(definition: TrainingDefinition): TrainingDefinition {
  return definition
}
