import type { RolloutRow, RolloutTrace, RunHealth, RunListing, RunSummary, SampleSummary, TaskSummary } from '@aworld-train/core'

/** What an exported file says of each run at once; the rest lies in parts, which are opened when they are needed. */
export interface ExportedRun {
  readonly listing: RunListing
  readonly summary: RunSummary
  /** Number of the part with the rows. */
  readonly rows: number
}

/** The lists of a run: one part. */
export interface ExportedRows {
  readonly rows: readonly RolloutRow[]
  readonly tasks: Readonly<Record<string, TaskSummary>>
  readonly samples: readonly SampleSummary[]
  /** Of each row the number of the part with its trace; `null` where the file does not carry it. */
  readonly parts: readonly (number | null)[]
  readonly health: RunHealth
  /** Text of every token id in the traces. */
  readonly vocabulary: Readonly<Record<number, string>>
}

/** A trace without what the lists say already. */
export type ExportedTrace = Omit<RolloutTrace, 'row' | 'task' | 'vocabulary'>

/** Traces by the key of their rollout: one part. */
export type ExportedTraces = Readonly<Record<string, ExportedTrace>>
