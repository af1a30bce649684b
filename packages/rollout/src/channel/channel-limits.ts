import type { ChannelServerLimits } from './channel-types.ts'

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
