export { endOfLines } from './end-of-lines.ts'
export {
  type EvaluatedRollout,
  type FinishedSum,
  type FinishedTotals,
  mostNamed,
  type StepTotals,
} from './finished-totals.ts'
export { healthEveryMs, healthKeptMs } from './health-samples.ts'
export { readFiles } from './keep-files.ts'
export { keepTokenizer } from './keep-tokenizer.ts'
export { type OwnedRunStore, openRunStore } from './open-run-store.ts'
export { type EventPage, readEvents } from './read-events.ts'
export { resolveRun } from './resolve-run.ts'
export { acquireRunLock, isOwned } from './run-lock.ts'
export type { RecordedCall } from './run-queries.ts'
export { type RunReader, readRun } from './run-reader.ts'
export { toStoreError } from './store-error.ts'
export { writeJsonAtomically } from './write-json-atomically.ts'
