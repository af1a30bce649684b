export interface ChannelServerLimits {
  /** Largest frame that is taken, in bytes. Default 256 MiB. */
  readonly maxFrameBytes: number
  /** Bytes that wait for a trainer client that does not read; above it the connection is cut. Default 256 MiB. */
  readonly maxBufferedBytes: number
  /** Most connections at once. Default 4,096. */
  readonly maxConnections: number
  /** A trainer client must have said hello by then. Default 10,000. */
  readonly helloMs: number
  /** After its hello, a trainer client must have sent its files by then. Default 60,000. */
  readonly filesMs: number
  /** Default 15,000. */
  readonly pingMs: number
  /** A connection that is silent this long is dead. Default 45,000. */
  readonly deadMs: number
}

/** Default limits of a channel server. */
export const defaultChannelLimits: ChannelServerLimits = {
  maxFrameBytes: 256 * 1024 * 1024,
  maxBufferedBytes: 256 * 1024 * 1024,
  maxConnections: 4_096,
  helloMs: 10_000,
  filesMs: 60_000,
  pingMs: 15_000,
  deadMs: 45_000,
}
