export interface WorkerPoolLimits {
  /** Largest message of a worker, in bytes. Default 256 MiB. */
  readonly maxFrameBytes: number
  /** Bytes that wait for a worker that does not read; above it the connection is cut. Default 256 MiB. */
  readonly maxBufferedBytes: number
  /** Connections at once. Default 4,096. */
  readonly maxConnections: number
  /** A worker must have said hello by then. Default 10,000. */
  readonly helloMs: number
  /** How often both sides say that they are alive. Default 5,000. */
  readonly beatMs: number
  /** A worker that says nothing this long is assigned nothing more. Default 15,000. */
  readonly deadMs: number
  /** How long the attempts of a worker that says nothing, or whose connection was lost, are kept for it. Default 15,000. */
  readonly graceMs: number
  /** How long a worker may take to end an attempt that is cancelled. Default 5,000. */
  readonly stopMs: number
}

export const defaultWorkerPoolLimits: WorkerPoolLimits = {
  maxFrameBytes: 256 * 1024 * 1024,
  maxBufferedBytes: 256 * 1024 * 1024,
  maxConnections: 4_096,
  helloMs: 10_000,
  beatMs: 5_000,
  deadMs: 15_000,
  graceMs: 15_000,
  stopMs: 5_000,
}
