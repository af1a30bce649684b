import type { RolloutRow, RolloutTrace, RunHealth, RunListing, RunSummary, SampleSummary, TaskSummary } from '@aworld-train/core'
import type { RunComparison } from './comparison.ts'
import type { Vocabularies } from './vocabularies.ts'

/** Data of each run that an exported file loads at once. The rest is in parts, which are opened when needed. */
export interface ExportedRun {
  readonly listing: RunListing
  readonly summary: RunSummary
  /** Number of the part with the evaluation, if the run is one. */
  readonly evaluation: number | null
  /** Number of the part with the rows. */
  readonly rows: number
}

/** The comparison of two evaluations of the file, by the ids of their runs. */
export type ExportedComparison = RunComparison & { readonly first: string; readonly second: string }

/** The lists of a run, which are one part. */
export interface ExportedRows {
  readonly rows: readonly RolloutRow[]
  readonly tasks: Readonly<Record<string, TaskSummary>>
  readonly samples: readonly SampleSummary[]
  /** Number of the part with the trace of each row; `null` if the file does not contain it. */
  readonly parts: readonly (number | null)[]
  readonly health: RunHealth
  /** Text of every token id in the traces. */
  readonly vocabularies: Vocabularies
}

/** A trace without the data that the lists have. */
export type ExportedTrace = Omit<RolloutTrace, 'row' | 'task' | 'vocabularies'>

/** Traces by the key of their rollout, which are one part. */
export type ExportedTraces = Readonly<Record<string, ExportedTrace>>
