import type { Learner, TokenEngine } from '@aworld-train/core'
import type { ConfigExtension, LocalConfig } from '@aworld-train/training'

/** What our own loop trains: a policy that is sampled and trained, and what a report says of it. */
export interface Policy {
  readonly engine: TokenEngine
  readonly learner: Learner
  /** The starting weights, which stay as they are; only where the configuration asks for a KL term. */
  readonly reference: Pick<Learner, 'logprobs'> | undefined
  /** Where it runs, for `report.json`. */
  readonly tier: Readonly<Record<string, unknown>>
  /** Two lines for a person. */
  readonly details: { readonly policy: string; readonly engine: string }
  /** Writes the weights as a Hugging Face folder. */
  saveModel(directory: string): Promise<void>
  close(): Promise<void>
}

/** A policy that is chosen and not opened yet. */
export interface ChosenPolicy {
  /** What makes a run of other settings another run. */
  readonly settings: unknown
  /** What a service says of itself, for `doctor`; absent for a policy of this process. */
  readonly describe?: ((signal: AbortSignal) => Promise<string>) | undefined
  /** `model` is a Hugging Face folder. The signal ends waits for a service, also those of the learner: it is that of the whole run. */
  open(model: string, signal: AbortSignal): Promise<Policy>
}

/** What can be sampled and trained by our own loop, by the section of the configuration that is its own. */
export interface PolicyKind {
  readonly extension?: ConfigExtension | undefined
  /** Reads its own section and refuses, with CONFIG_INVALID, what it cannot train. */
  choose(config: LocalConfig, extension: Readonly<Record<string, unknown>>, model: string | null): ChosenPolicy
}
