/** Checks of the exam of trainers, `describeTrainer` of the package `testing`. */
export type TrainerCheck =
  | 'rows'
  | 'gradients'
  | 'advantages'
  | 'logprobs'
  | 'loss'
  | 'direction'
  | 'gap'
  | 'emptyTurn'
  | 'microBatches'
  | 'leaveOneOut'
  | 'ledger'
  | 'resumes'
  | 'failures'
  | 'refusals'

/** Features by which users choose a trainer. */
export type TrainerFeature =
  | 'processor'
  | 'gpu'
  | 'severalRanks'
  | 'vllm'
  | 'lora'
  | 'klTerm'
  | 'severalRows'
  | 'evaluation'
  | 'resume'
  | 'export'

/** Abilities of a trainer, for people. The page docs/4.reference/trainers.md is made of them. */
export interface TrainerFacts {
  /** One sentence about what it is and for whom. */
  readonly summary: string
  /** Versions that it was tested with, such as `TRL 1.16.0`. */
  readonly versions: readonly string[]
  /** Its Python environment for a processor, with all downloads in the cache; `null` if it needs none. */
  readonly environment: { readonly megabytes: number; readonly seconds: number } | null
  /** The shortest command that trains with it. */
  readonly command: string
  /** `yes`, or a sentence about how far it has the feature or why not. */
  readonly features: Readonly<Record<TrainerFeature, string>>
  /** Checks that the exam cannot make, with the reason. */
  readonly notShown: Readonly<Partial<Record<TrainerCheck, string>>>
}
