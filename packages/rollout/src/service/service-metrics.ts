import { Gauge, Registry } from 'prom-client'
import { registerChannelMetrics } from '../channel/channel-metrics.ts'
import type { ChannelServer } from '../channel/channel-types.ts'
import type { RolloutService } from './rollout-service.ts'

export interface ServiceMetricsSources {
  readonly service: RolloutService
  readonly waiting: () => number
  readonly sockets: () => number
  /** Requests and sockets that were not served, by reason of a closed list. */
  readonly refusals: ReadonlyMap<string, number>
  /** Absent where no trainer is served. */
  readonly channel?: Pick<ChannelServer, 'counts'> | undefined
}

export interface ServiceMetrics {
  readonly contentType: string
  text(): Promise<string>
}

type Values = readonly (readonly [label: string, value: number])[]

/** The metrics of a rollout service, read when they are asked for; nothing of a request becomes a label. */
export function createServiceMetrics({ service, waiting, sockets, refusals, channel }: ServiceMetricsSources): ServiceMetrics {
  const registry = new Registry()

  function add(name: string, help: string, label: string | null, read: () => Values): void {
    new Gauge({
      name: `aworld_train_rollout_service_${name}`,
      help,
      labelNames: label === null ? [] : [label],
      registers: [registry],
      collect() {
        for (const [key, value] of read()) this.set(label === null ? {} : { [label]: key }, value)
      },
    })
  }
  const one = (name: string, help: string, read: () => number) => add(name, help, null, () => [['', read()]])

  add('rollouts', 'Rollouts by where they stand; the ended ones since the start.', 'status', () => {
    const { queued, running, done, failed, cancelled } = service.counts()
    return Object.entries({ queued, running, done, failed, cancelled })
  })
  add('episodes', 'Attempts that have ended, by stop reason.', 'stop_reason', () => Object.entries(service.counts().ends))
  one('rollout_seconds', 'Seconds that those took in all.', () => service.counts().durationMs / 1_000)
  one('queue_bytes', 'Bytes of requests without a result.', () => service.counts().queuedBytes)
  one('oldest_queued_seconds', 'How long the first of the queue has waited.', () => service.counts().oldestQueuedMs / 1_000)
  one('stopping', '1 once nothing more is taken.', () => Number(service.counts().stopping))
  one('waiting_requests', 'Requests that wait or stream.', waiting)
  one('sockets', 'Open connections.', sockets)
  add('refused', 'Requests and sockets that were not served, by reason.', 'reason', () => [...refusals])
  if (channel) registerChannelMetrics(registry, channel.counts)
  return { contentType: registry.contentType, text: () => registry.metrics() }
}
