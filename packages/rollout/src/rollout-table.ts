import type { EndedAttempt } from '@aworld-train/core'
import type { Episode, RolloutRequest } from '@aworld-train/protocol'
import type { Span } from '@opentelemetry/api'
import type { AttemptResult } from './run-attempt.ts'

/** The attempt that a worker has or had last. */
export interface CurrentAttempt {
  readonly number: number
  readonly worker: string
  /** The hash of the agent that this worker has; `null` for this process. */
  readonly agent: string | null
  /** Milliseconds of the process's clock. */
  readonly startedAt: number
  /** Aborts when the agent is to stop. */
  readonly stop: AbortController
  /** Aborts when its worker is lost and its result is no longer waited for. */
  readonly lost: AbortController
  result: AttemptResult | null
}

/** State that this process keeps for a rollout without a result. The scheduler keeps its status under the same key. */
export interface RolloutEntry {
  readonly request: RolloutRequest
  /** Aborts when the rollout is cancelled. */
  readonly cancelling: AbortController
  readonly settle: { readonly resolve: (episode: Episode) => void; readonly reject: (error: unknown) => void }
  /** Ends the watch of the caller's signal. */
  unwatch: () => void
  /** `null` before its first attempt. */
  span: Span | null
  /** The number that the store gave last; `null` before the first. */
  number: number | null
  /** The attempt that the next one follows. */
  before: EndedAttempt | null
  /** `null` while no worker has the rollout. */
  attempt: CurrentAttempt | null
  isAnnounced: boolean
  /** Resolves when all turns of earlier attempts are on record. The store refuses them once the next attempt has begun. */
  recorded: Promise<void>
}

export function createEntry(request: RolloutRequest, settle: RolloutEntry['settle']): RolloutEntry {
  return {
    request,
    cancelling: new AbortController(),
    settle,
    unwatch: () => {},
    span: null,
    number: null,
    before: null,
    attempt: null,
    isAnnounced: false,
    recorded: Promise.resolve(),
  }
}
