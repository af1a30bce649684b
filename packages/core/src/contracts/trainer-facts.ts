/** What the exam of trainers looks at, `describeTrainer` of the package `testing`. */
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

/** What users choose a trainer by. */
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

/** What a trainer can do, for people: the page docs/4.reference/trainers.md is made of it. */
export interface TrainerFacts {
  /** A sentence: what it is, and for whom. */
  readonly summary: string
  /** What it was tested with, such as `TRL 1.16.0`. */
  readonly versions: readonly string[]
  /** Its environment of Python for a processor, with all downloads in the cache; `null` where it needs none. */
  readonly environment: { readonly megabytes: number; readonly seconds: number } | null
  /** The shortest command that trains with it. */
  readonly command: string
  /** `yes`, or a sentence that says how far, or why not. */
  readonly features: Readonly<Record<TrainerFeature, string>>
  /** What the exam cannot see of it, with the reason. */
  readonly notShown: Readonly<Partial<Record<TrainerCheck, string>>>
}
