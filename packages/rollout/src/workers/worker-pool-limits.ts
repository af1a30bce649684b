export interface WorkerPoolLimits {
  /** Largest message of a worker, in bytes. Default 256 MiB. */
  readonly maxFrameBytes: number
  /** Most bytes that wait for a worker that does not read; beyond that the connection is cut. Default 256 MiB. */
  readonly maxBufferedBytes: number
  /** Most connections at once. Default 4,096. */
  readonly maxConnections: number
  /** How long a worker may take to say hello. Default 10,000. */
  readonly helloMs: number
  /** How often both sides say that they are alive. Default 5,000. */
  readonly beatMs: number
  /** A worker that is silent this long is assigned nothing more. Default 15,000. */
  readonly deadMs: number
  /** How long the attempts of a silent or disconnected worker are kept for it. Default 15,000. */
  readonly graceMs: number
  /** How long a worker may take to end a cancelled attempt. Default 5,000. */
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
