import { retryRules } from '@aworld-train/http'

/** How an exchange with a server failed, ordered by time. */
export type Failure =
  /** There was no connection, so nothing was written. */
  | { readonly stage: 'connect' }
  /** The connection closed before the first byte of the answer. */
  | { readonly stage: 'sent'; readonly reused: boolean; readonly afterMs: number }
  /** The server answered with a status. */
  | { readonly stage: 'status'; readonly status: number }
  /** The connection closed after the first byte of the answer. */
  | { readonly stage: 'answered' }

/**
 * Whether a call may be sent once more; `before` lists its earlier failures. A request that the server may be generating for is not
 * repeated, because its tokens would be sampled twice. A reused socket that closes at once without a byte was closing when the request was
 * written, so the server has not read it. If the next attempt gets no connection, the server has just ended.
 */
export function mayRetry(failure: Failure, before: readonly Failure[], raceMs: number): boolean {
  const [first] = before
  if (before.length >= retryRules.sampling.retries) return false
  if (first) return first.stage === 'sent' && failure.stage === 'connect'
  switch (failure.stage) {
    case 'connect':
      return true
    case 'sent':
      return failure.reused && failure.afterMs <= raceMs
    case 'status':
      return retryRules.sampling.statuses(failure.status)
    case 'answered':
      return false
  }
}
