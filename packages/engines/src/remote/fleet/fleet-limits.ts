/** Every bound of a fleet. The duration of an answer has none: the deadline of a call is its caller's signal. */
export interface FleetLimits {
  /** Calls that one replica may have in flight, which is also its number of sockets. */
  readonly maxInFlight: number
  /** Most calls that may wait for a place. The next is refused with POLICY_RATE_LIMITED. */
  readonly maxWaiting: number
  /** Most rollouts whose replica is remembered. Beyond that, the one that called longest ago is forgotten. */
  readonly maxSessions: number
  /** A rollout leaves a full replica for another that has this many calls fewer and … */
  readonly repinExcess: number
  /** … where the full one has more than this many times the calls of the other. */
  readonly repinRatio: number
  readonly probeIntervalMs: number
  readonly probeTimeoutMs: number
  /** Failed probes in a row that take a replica out. */
  readonly unhealthyAfter: number
  /** Good probes in a row that bring it back. */
  readonly healthyAfter: number
  /** How long a call waits while no replica is healthy. */
  readonly unavailableMs: number
  readonly connectTimeoutMs: number
  /** An idle socket is closed after this time. uvicorn closes it after 5 s, and a request sent into that is lost. */
  readonly keepAliveMs: number
  /** A reused socket that closes without an answer within this time of the request counts as one that was closing before the request. */
  readonly raceMs: number
}

export const defaultFleetLimits: FleetLimits = {
  maxInFlight: 256,
  maxWaiting: 8192,
  maxSessions: 65_536,
  repinExcess: 8,
  repinRatio: 1.5,
  probeIntervalMs: 5000,
  probeTimeoutMs: 5000,
  unhealthyAfter: 3,
  healthyAfter: 2,
  unavailableMs: 10_000,
  connectTimeoutMs: 10_000,
  keepAliveMs: 3000,
  raceMs: 1000,
}
