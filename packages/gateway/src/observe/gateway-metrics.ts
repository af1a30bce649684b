import type { IntervalHistogram } from 'node:perf_hooks'
import type { ReplicaHealth } from '@aworld-train/core'
import { createPolledMetrics } from '@aworld-train/http'
import { Gauge, type Registry } from 'prom-client'
import type { Counters } from '../counters.ts'
import type { Gate } from '../gate.ts'
import type { ModelTable } from '../models/model-table.ts'
import { metricPrefix } from './call-metrics.ts'

export interface GatewayMetricsSources {
  readonly counters: Counters
  readonly models: ModelTable
  readonly gate: Gate
  readonly eventLoop: IntervalHistogram
  readonly sockets: () => number
  readonly sessions: () => number
  readonly draining: () => boolean
}

/** Registers the metrics of a gateway besides those of its calls. They are read when asked for; names come from closed lists. */
export function registerGatewayMetrics(registry: Registry, sources: GatewayMetricsSources): void {
  const { counters, models, gate, eventLoop } = sources
  const { gauge, counter } = createPolledMetrics(registry, metricPrefix)
  counter('sampled_tokens', 'Tokens that engines have handed over, those of turns without record too.', () => counters.sampledTokens)
  counter('continuations', 'Calls whose prompt continued a recorded turn.', () => counters.continuations)
  counter('branches', 'Calls that began a new branch, by reason.', () => counters.branches, 'reason')
  counter('tolerated', 'Differences between a request and the record that did not matter, by kind.', () => counters.tolerated, 'kind')
  counter('ignored_fields', 'Request fields without effect; those of no API are counted together.', () => counters.ignored, 'field')
  counter('parse_issues', 'Tool calls that were sampled and delivered as text, by kind.', () => counters.parseIssues, 'kind')
  counter('abandoned_turns', 'Turns that their client did not wholly receive.', () => counters.abandonedTurns)
  counter('refused', 'Requests and sockets that did not become a call, by reason.', () => counters.refusals, 'reason')
  gauge('in_flight', 'Calls past the gate.', () => gate.inside())
  gauge('waiting', 'Calls held at the gate.', () => gate.waiting())
  gauge('oldest_waiting_seconds', 'How long the first of them has been held.', () => gate.oldestWaitingMs() / 1_000)
  gauge('paused', '1 while calls are held.', () => Number(gate.paused()))
  gauge('draining', '1 while the gateway is about to stop.', () => Number(sources.draining()))
  gauge('sessions', 'Attempts with open URLs.', () => sources.sessions())
  gauge('sockets', 'Open connections of clients.', () => sources.sockets())
  const engines = models.all.flatMap((model) => (model.kind === 'frozen' ? [] : [model]))
  const versions = () => Object.fromEntries(engines.map(({ name, engine }) => [name, engine.weightVersion()]))
  gauge('weight_version', 'Version of the weights that sample.', versions, 'model')

  function ofReplicas(name: string, help: string, read: (replica: ReplicaHealth) => number): void {
    new Gauge({
      name: `${metricPrefix}replica_${name}`,
      help,
      registers: [registry],
      labelNames: ['model', 'replica'],
      collect() {
        this.reset()
        for (const { name: model, engine } of engines)
          for (const replica of engine.health?.().replicas ?? []) this.set({ model, replica: replica.name }, read(replica))
      },
    })
  }
  ofReplicas('ready', '1 for a server that takes calls.', ({ ready }) => Number(ready))
  ofReplicas('in_flight', 'Calls under way, by server.', ({ inFlight }) => inFlight)
  ofReplicas('queued', 'Calls that wait for a server.', ({ queued }) => queued)
  ofReplicas('oldest_queued_seconds', 'How long the first of them has waited.', ({ oldestQueuedMs }) => oldestQueuedMs / 1_000)
  gauge('event_loop_delay_p99_seconds', 'Of the time since the scrape before.', () => {
    const p99 = eventLoop.percentile(99) / 1e9
    eventLoop.reset()
    return Number.isFinite(p99) ? p99 : 0
  })
  gauge('resident_memory_bytes', 'Resident memory of the process.', () => process.memoryUsage.rss())
  counter('process_cpu_seconds', 'User and system time of the process.', () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
}
