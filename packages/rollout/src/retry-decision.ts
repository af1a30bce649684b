import type { ErrorRecord, StopReason } from '@aworld-train/core'

export interface RetryInput {
  readonly stopReason: StopReason
  readonly error: ErrorRecord | undefined
  /** Retries that this rollout has had. */
  readonly retried: number
  readonly retries: number
}

const firstDelayMs = 100

/**
 * Milliseconds until the next attempt, doubled each time; `null` when the result stands. Only temporary failures of environment, gateway or
 * policy are tried again, and only if they were not already waited out where they happened.
 */
export function decideRetry({ stopReason, error, retried, retries }: RetryInput): number | null {
  if (stopReason !== 'failed' || !error?.retryable || retried >= retries || error.details?.['waitedMs'] !== undefined) return null
  const passing = error.boundary === 'environment' || error.boundary === 'policy' || error.boundary === 'gateway'
  return passing ? firstDelayMs * 2 ** retried : null
}
