import { z } from 'zod'

/** Version of the channel: a trainer client and a service that name another one refuse each other. */
export const channelProtocol = 2

/** Where a trainer client's WebSocket goes, on the port of the rollout service. */
export const channelPath = '/v1/channel'

/** Close codes of the channel: the trainer client is not served, a message cannot be read, the same worker has connected again. */
export const channelCloseCodes = { rejected: 4000, unreadable: 4001, replaced: 4002 } as const

/** A failure as it crosses the channel; `code` is one of the catalogue, or the trainer client's own. */
export const ChannelFailure = z.strictObject({ code: z.string().min(1), message: z.string(), retryable: z.boolean() })
export type ChannelFailure = z.infer<typeof ChannelFailure>

/** The rows of an episode that a trainer gets: every branch, the last one, the one with the most tokens, or the last one of an agent. */
export const RowSelection = z.union([z.enum(['all', 'last', 'longest']), z.strictObject({ role: z.string().min(1) })])
export type RowSelection = z.infer<typeof RowSelection>

/** Part of the data that a submission belongs to. Rollouts of `val` are never trained. */
export const ChannelPartition = z.enum(['train', 'val'])
export type ChannelPartition = z.infer<typeof ChannelPartition>
