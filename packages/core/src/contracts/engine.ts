/** One of several servers behind an engine, as its health checks and the calls in flight show it. */
export interface ReplicaHealth {
  /** Unique among the servers of its engine, of bounded length and free of secrets, because it becomes a label of metrics. */
  readonly name: string
  readonly ready: boolean
  /** The reason for people why it takes no calls; `null` if it takes them. */
  readonly reason: string | null
  readonly inFlight: number
  /** Number of calls that wait for room, and milliseconds that the first of them has waited. */
  readonly queued: number
  readonly oldestQueuedMs: number
}

/** Whether an engine can take calls now, for `/ready` and `/metrics`. */
export interface EngineHealth {
  readonly ready: boolean
  /** The reason for people why it is not ready; `null` if it is. */
  readonly reason: string | null
  readonly replicas: readonly ReplicaHealth[]
}

/** The common part of all engines, whether tokens or bytes go to them. */
export interface Engine {
  readonly name: string
  /** Version of the weights that sample now. */
  weightVersion(): number
  /** Answers immediately from known facts. An engine without this method is ready while it is open. */
  health?(): EngineHealth
  /** Reports that no more calls with this affinity come. State kept for them, such as their replica, may be dropped. */
  forget?(affinity: string): void
  close(): Promise<void>
}
