import type { WorkerHealth } from '@aworld-train/core'
import { createPolledMetrics } from '@aworld-train/http'
import { Registry } from 'prom-client'
import { registerChannelMetrics } from '../channel/channel-metrics.ts'
import type { ChannelServer } from '../channel/channel-types.ts'
import { registerWorkerMetrics } from '../workers/worker-metrics.ts'
import type { RolloutService } from './rollout-service.ts'

export interface ServiceMetricsSources {
  readonly service: RolloutService
  readonly waiting: () => number
  readonly sockets: () => number
  /** Requests and sockets that were not served, by reason of a closed list. */
  readonly refusals: ReadonlyMap<string, number>
  /** Absent where no trainer is served. */
  readonly channel?: Pick<ChannelServer, 'counts'> | undefined
  /** Absent where agents run in this process. */
  readonly workers?: (() => readonly WorkerHealth[]) | undefined
}

/** The metrics of a rollout service; nothing of a request becomes a label. */
export function createServiceMetrics({ service, waiting, sockets, refusals, channel, workers }: ServiceMetricsSources): Registry {
  const registry = new Registry()
  const { gauge } = createPolledMetrics(registry, 'aworld_train_rollout_service_')
  const rollouts = () => {
    const { queued, running, done, failed, cancelled } = service.counts()
    return { queued, running, done, failed, cancelled }
  }
  gauge('rollouts', 'Rollouts by where they stand; the ended ones since the start.', rollouts, 'status')
  gauge('episodes', 'Attempts that have ended, by stop reason.', () => service.counts().ends, 'stop_reason')
  gauge('rollout_seconds', 'Seconds that those took in all.', () => service.counts().durationMs / 1_000)
  gauge('queue_bytes', 'Bytes of requests without a result.', () => service.counts().queuedBytes)
  gauge('oldest_queued_seconds', 'How long the first of the queue has waited.', () => service.counts().oldestQueuedMs / 1_000)
  gauge('stopping', '1 once nothing more is taken.', () => Number(service.counts().stopping))
  gauge('waiting_requests', 'Requests that wait or stream.', waiting)
  gauge('sockets', 'Open connections.', sockets)
  gauge('refused', 'Requests and sockets that were not served, by reason.', () => Object.fromEntries(refusals), 'reason')
  if (channel) registerChannelMetrics(registry, () => channel.counts())
  if (workers) registerWorkerMetrics(registry, workers)
  return registry
}
