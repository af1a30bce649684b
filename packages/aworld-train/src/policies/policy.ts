import type { Learner, TokenEngine } from '@aworld-train/core'
import type { ConfigExtension, LocalConfig } from '@aworld-train/training'

/** A policy that our own loop samples and trains, with its description for a report. */
export interface Policy {
  readonly engine: TokenEngine
  readonly learner: Learner
  /** The starting weights, which do not change. Present only if the configuration asks for a KL term. */
  readonly reference: Pick<Learner, 'logprobs'> | undefined
  /** The policies that it is made of, by the names that agents ask for; absent for one alone. */
  readonly members?: ReadonlyMap<string, Policy & { readonly trainable: boolean }> | undefined
  /** The machine or service that runs it, for `report.json`. */
  readonly tier: Readonly<Record<string, unknown>>
  /** Two lines for people. */
  readonly details: { readonly policy: string; readonly engine: string }
  /** Writes the weights as a Hugging Face folder. */
  saveModel(directory: string): Promise<void>
  close(): Promise<void>
}

/** A policy that is chosen but not open. */
export interface ChosenPolicy {
  /** Settings whose change makes a different run. */
  readonly settings: unknown
  /** Description of the service by itself, for `doctor`; absent for a policy of this process. */
  readonly describe?: ((signal: AbortSignal) => Promise<string>) | undefined
  /** `model` is a Hugging Face folder. The signal is that of the whole run and ends waits for a service, also those of the learner. */
  open(model: string, signal: AbortSignal): Promise<Policy>
}

/** The place of a policy among several, before it is open. */
export interface PolicyPlace {
  readonly name: string
  readonly index: number
  readonly count: number
  readonly trainable: boolean
}

/** A kind of policy that our own loop can sample and train, identified by its section of the configuration. */
export interface PolicyKind {
  readonly extension?: ConfigExtension | undefined
  /** Whether policies may have one folder. Default: `false`, since a folder has the weights of one. */
  readonly sharesFolders?: boolean | undefined
  /**
   * Reads its own section. Throws CONFIG_INVALID for settings that it cannot train. `place` is that of the policy among several, which share
   * the engine's threads.
   */
  choose(config: LocalConfig, extension: Readonly<Record<string, unknown>>, model: string | null, place?: PolicyPlace): ChosenPolicy
}
