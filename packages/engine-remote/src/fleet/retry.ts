/** How an exchange with a server went wrong, in the order of time. */
export type Failure =
  /** No connection was had: nothing was written. */
  | { readonly stage: 'connect' }
  /** The connection closed before the first byte of the answer. */
  | { readonly stage: 'sent'; readonly reused: boolean; readonly afterMs: number }
  /** The server answered with a status. */
  | { readonly stage: 'status'; readonly status: number }
  /** The connection closed behind the first byte of the answer. */
  | { readonly stage: 'answered' }

/**
 * Whether a call may be sent once more. A request that may be generating is not: what it samples would be sampled twice. A
 * reused socket that closes at once, without a byte, was closing when the request was written to it.
 */
export function mayRetry(failure: Failure, attempt: number, raceMs: number): boolean {
  if (attempt > 0) return false
  switch (failure.stage) {
    case 'connect':
      return true
    case 'sent':
      return failure.reused && failure.afterMs <= raceMs
    case 'status':
      return failure.status >= 502 && failure.status <= 504
    case 'answered':
      return false
  }
}
