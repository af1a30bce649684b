import type { ServiceMessage, TrainerClientMessage } from '@aworld-train/core'
import type { ChannelOutcome, ChannelTotals } from './channel-types.ts'

/** Counts of a channel server since its start. */
export interface ChannelTally {
  readonly totals: ChannelTotals
  received(message: TrainerClientMessage): void
  sent(message: ServiceMessage): void
  /** Counts a frame and its bytes. */
  bytes(direction: 'received' | 'sent', count: number): void
  ended(outcome: ChannelOutcome): void
  rejected(): void
  lost(): void
  reconnected(): void
}

export function createChannelTally(): ChannelTally {
  const totals = {
    rejected: 0,
    lost: 0,
    reconnects: 0,
    frames: { received: 0, sent: 0 },
    bytes: { received: 0, sent: 0 },
    rows: 0,
    rowTokens: 0,
    outcomes: { sent: 0, accepted: 0, refused: 0, cancelled: 0, superseded: 0, lost: 0 },
    aborted: { service: 0, trainer: 0 },
  }
  return {
    totals,
    received(message) {
      if (message.type === 'generated' && message.finish === 'aborted') totals.aborted.trainer++
    },
    sent({ type }) {
      if (type === 'abort') totals.aborted.service++
    },
    bytes(direction, count) {
      totals.frames[direction]++
      totals.bytes[direction] += count
    },
    ended({ outcome, rows = 0, maskTokens = 0 }) {
      totals.outcomes[outcome]++
      totals.rows += rows
      totals.rowTokens += maskTokens
    },
    rejected: () => void totals.rejected++,
    lost: () => void totals.lost++,
    reconnected: () => void totals.reconnects++,
  }
}
