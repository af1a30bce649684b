import type { ErrorRecord, StopReason } from '@aworld-train/protocol'

export interface RetryInput {
  readonly stopReason: StopReason
  readonly error: ErrorRecord | undefined
  /** Retries this rollout has had. */
  readonly retried: number
  readonly retries: number
}

const firstDelayMs = 100

/** Milliseconds after which a new attempt begins, doubling each time; `null` when the result stands. Only temporary failures of environment, gateway or policy are tried again, and none that was waited out where it happened. */
export function decideRetry({ stopReason, error, retried, retries }: RetryInput): number | null {
  if (stopReason !== 'failed' || !error?.retryable || retried >= retries || error.details?.['waitedMs'] !== undefined) return null
  const passing = error.boundary === 'environment' || error.boundary === 'policy' || error.boundary === 'gateway'
  return passing ? firstDelayMs * 2 ** retried : null
}
