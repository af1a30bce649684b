/** One of several servers behind an engine, as its own health checks and the calls in flight show it. */
export interface ReplicaHealth {
  /** Unique among the servers of its engine, of bounded length and free of secrets, because it becomes a label of metrics. */
  readonly name: string
  readonly ready: boolean
  /** Why it takes no calls, for a person; `null` where it does. */
  readonly reason: string | null
  readonly inFlight: number
  /** Calls that wait for room, and milliseconds that the first of them has waited. */
  readonly queued: number
  readonly oldestQueuedMs: number
}

/** Whether an engine can take calls now; `/ready` and `/metrics` ask. */
export interface EngineHealth {
  readonly ready: boolean
  /** Why it is not ready, for a person; `null` where it is. */
  readonly reason: string | null
  readonly replicas: readonly ReplicaHealth[]
}

/** What every engine has, whether tokens or bytes go to it. */
export interface Engine {
  readonly name: string
  /** Version of the weights that sample now. */
  weightVersion(): number
  /** Answers at once from what is known. An engine without it is ready while it is open. */
  health?(): EngineHealth
  /** No more calls with this affinity come: what is kept for them, such as the replica that they stay with, may go. */
  forget?(affinity: string): void
  close(): Promise<void>
}
