import type { IncarnationLedger, TrainedLine } from './read-ledger.ts'

/** One start of a trainer. Starts are listed in their order. */
export interface IncarnationRecord {
  readonly incarnation: string
  /** Step of the checkpoint that it began with; 0 for none. */
  readonly resumedFromStep: number
}

/** The last step of each start that is kept. A later start from an earlier checkpoint discards the steps after that checkpoint. */
export function lastStandingSteps(incarnations: readonly IncarnationRecord[]): ReadonlyMap<string, number> {
  let limit = Number.POSITIVE_INFINITY
  const limits = new Map<string, number>()
  for (const { incarnation, resumedFromStep } of incarnations.toReversed()) {
    limits.set(incarnation, limit)
    limit = Math.min(limit, resumedFromStep)
  }
  return limits
}

/** Training batches whose weights were kept, in the order of their steps. */
export function standingBatches(ledgers: readonly IncarnationLedger[], incarnations: readonly IncarnationRecord[]): TrainedLine[] {
  const limits = lastStandingSteps(incarnations)
  return ledgers
    .flatMap(({ incarnation, trained }) => trained.filter(({ step }) => step <= (limits.get(incarnation) ?? Number.POSITIVE_INFINITY)))
    .sort((a, b) => a.step - b.step)
}
