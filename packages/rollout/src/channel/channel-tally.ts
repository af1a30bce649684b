import type { ChannelPartition, ServiceMessage, TrainerClientMessage, UntrainedReason } from '@aworld-train/core'

/** How a submission ended, for ledgers and logs. */
export interface ChannelOutcome {
  readonly key: string
  readonly run: string
  readonly incarnation: string
  readonly partition: ChannelPartition
  /** `sent` may come more than once for a key, after a reconnect. */
  readonly outcome: 'sent' | 'accepted' | 'refused' | 'cancelled' | 'superseded' | 'lost'
  /** For `sent`: number of rows of the result, their tokens with mask 1, and the sampled tokens that no row has, by reason. */
  readonly rows?: number | undefined
  readonly maskTokens?: number | undefined
  readonly omitted?: Readonly<Partial<Record<UntrainedReason, number>>> | undefined
  /** Why the rollout of a `sent` result failed, or why the trainer refused the result. */
  readonly error?: { readonly code: string; readonly message: string } | undefined
}

/** Counts since the start of a channel server. */
export interface ChannelTotals {
  /** Connections that were not served. */
  readonly rejected: number
  /** Connections lost with rollouts under way. */
  readonly lost: number
  readonly reconnects: number
  readonly frames: Readonly<Record<'received' | 'sent', number>>
  readonly bytes: Readonly<Record<'received' | 'sent', number>>
  /** Rows of results that were sent, and their tokens with mask 1; a result may be sent again after a reconnect. */
  readonly rows: number
  readonly rowTokens: number
  readonly outcomes: Readonly<Record<ChannelOutcome['outcome'], number>>
  /** Model calls that the service aborted, or that the engine of a trainer client gave up. */
  readonly aborted: Readonly<Record<'service' | 'trainer', number>>
}

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
