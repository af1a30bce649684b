import { createPolledMetrics } from '@aworld-train/http'
import type { Registry } from 'prom-client'
import type { ChannelCounts } from './channel-types.ts'

/** Registers the metrics of a channel; labels are of closed lists. */
export function registerChannelMetrics(registry: Registry, counts: () => ChannelCounts): void {
  const { gauge, counter } = createPolledMetrics(registry, 'aworld_train_channel_')
  gauge('connections', 'Open connections, those that are being greeted included.', () => counts().connections)
  gauge('workers', 'Workers of trainers that are connected and welcome.', () => counts().workers)
  gauge('open_rollouts', 'Submitted rollouts without a result.', () => counts().open)
  gauge('calls_in_flight', 'Model calls that trainers sample, or that wait for their connection.', () => counts().calls)
  counter('frames', 'Frames by direction.', () => counts().frames, 'direction')
  counter('frame_bytes', 'Bytes of those frames.', () => counts().bytes, 'direction')
  counter('rows', 'Rows of results that were sent; after a reconnect a result may be sent again.', () => counts().rows)
  counter('row_tokens', 'Tokens with mask 1 in those rows.', () => counts().rowTokens)
  counter(
    'submissions',
    'What became of submissions: results sent, accepted or refused, and those that ended without one.',
    () => counts().outcomes,
    'outcome',
  )
  counter('aborted_calls', 'Model calls that the service aborted, or that the engine of a trainer gave up.', () => counts().aborted, 'by')
  counter('reconnects', 'Workers that came back.', () => counts().reconnects)
  counter('lost_connections', 'Connections lost with rollouts under way.', () => counts().lost)
  counter('rejected', 'Connections of trainers that were not served.', () => counts().rejected)
}
