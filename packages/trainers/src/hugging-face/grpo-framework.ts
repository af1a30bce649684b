import { type KeyTree, numberAt } from '@aworld-train/training'

/** A framework whose keys are those of transformers' TrainingArguments and of a GRPOConfig, with its differences. */
export interface GrpoFramework {
  /** As in `trainEngineName`. */
  readonly name: string
  /** Name for people. */
  readonly title: string
  /** Its default of `per_device_train_batch_size`. */
  readonly batchRows: number
  /** The key that keeps it from shuffling tasks by itself. */
  readonly shuffleKey: string
  /** The key for the part of all steps in which the learning rate rises. */
  readonly warmupFractionKey: string
  /** The key of an entropy term; `null` if there is none. */
  readonly entropyKey: string | null
  /** Keys that make every rollout's baseline the mean of the others; `null` if it cannot do that. */
  readonly leaveOneOut: KeyTree | null
  /** A section of it that is no field of the trainer's configuration, such as that of an adapter; `null` for none. */
  readonly section: string | null
  /** Adds the defaults that a group needs to its fields. */
  complete?(fields: KeyTree): KeyTree
  /** Notes on effects of its fields that a user may not expect. `parts` is the number of updates of one pass over a batch. */
  notesOf?(fields: KeyTree, parts: number): readonly string[]
  /** Variables of the Python that has the installed classes read a configuration. */
  variables?(): Readonly<Record<string, string>>
}

/** A configuration for the installed classes to read. */
export interface GrpoQuestion {
  readonly configuration: KeyTree
  readonly section: KeyTree | null
  /** A folder or a name on a hub; `null` if none is named. */
  readonly model: string | null
  /** Keys of ours that an unknown key may be meant for. */
  readonly names?: readonly string[] | undefined
}

/** The question as the framework's module of the bridge reads it: its section stands under the name that it has. */
export const toQuestion = ({ section: name }: GrpoFramework, { section, ...question }: GrpoQuestion): object =>
  name === null ? question : { ...question, [name]: section }

/** Prompts of one generation of rollouts, and the number of updates that train it. */
export function generationOf(
  fields: KeyTree,
  { batchRows }: { readonly batchRows: number },
): { readonly prompts: number; readonly updates: number } {
  const accumulated = numberAt(fields, 'gradient_accumulation_steps', 1)
  const batch = numberAt(fields, 'per_device_train_batch_size', batchRows)
  const perGeneration = numberAt(fields, 'steps_per_generation', numberAt(fields, 'generation_batch_size', batch * accumulated) / batch)
  return {
    prompts: (batch * perGeneration) / numberAt(fields, 'num_generations', 8),
    updates: (numberAt(fields, 'num_iterations', 1) * perGeneration) / accumulated,
  }
}
