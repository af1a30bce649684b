import type { HttpLimits } from '@aworld-train/http'

export interface RolloutServerLimits extends HttpLimits {
  /** Largest request body, in bytes. */
  readonly maxBodyBytes: number
  /** Most requests that wait or stream at once. One more is answered with 503. */
  readonly maxWaiting: number
  /** Longest `wait`. A longer one is cut to this. */
  readonly maxWaitMs: number
  /** Longest silence of a stream of events. */
  readonly keepAwakeMs: number
}

export const defaultRolloutServerLimits: RolloutServerLimits = {
  maxSockets: 16_384,
  maxHeaderBytes: 16 * 1024,
  headersTimeoutMs: 30_000,
  requestTimeoutMs: 300_000,
  keepAliveTimeoutMs: 75_000,
  maxBodyBytes: 64 * 1024 * 1024,
  maxWaiting: 8_192,
  maxWaitMs: 600_000,
  keepAwakeMs: 15_000,
}
