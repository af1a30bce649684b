export { endOfLines } from './end-of-lines.ts'
export {
  type EvaluatedRollout,
  type FinishedSum,
  type FinishedTotals,
  mostNamed,
  type StepTotals,
} from './finished-totals.ts'
export { healthEveryMs, healthKeptMs } from './health-samples.ts'
export { keepTokenizer } from './keep-tokenizer.ts'
export type { KindRewards } from './kind-rewards.ts'
export { type OwnedRunStore, openRunStore, type RunStoreOptions } from './open-run-store.ts'
export { type EventPage, readEvents } from './read-events.ts'
export { type ResolvedRun, type ResolveRunOptions, resolveRun } from './resolve-run.ts'
export { acquireRunLock, isOwned, type RunLock } from './run-lock.ts'
export type { ManifestInput } from './run-manifest.ts'
export type { AttemptTurns, RecordedCall, RunCounts, RunQueries } from './run-queries.ts'
export { type RunReader, readRun } from './run-reader.ts'
export { toStoreError } from './store-error.ts'
export { writeJsonAtomically } from './write-json-atomically.ts'
