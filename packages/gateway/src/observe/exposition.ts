import type { IntervalHistogram } from 'node:perf_hooks'
import { type MetricValue, Registry } from 'prom-client'
import type { Counters, Tally } from '../counters.ts'
import type { Gate } from '../gate.ts'
import type { ModelTable } from '../models/model-table.ts'
import { type Histogram, secondsBounds } from './histogram.ts'
import type { Observer } from './observer.ts'

export interface ExpositionSources {
  readonly counters: Counters
  readonly observer: Observer
  readonly models: ModelTable
  readonly gate: Gate
  readonly eventLoop: IntervalHistogram
  readonly sockets: () => number
  readonly sessions: () => number
  readonly draining: () => boolean
}

export interface Exposition {
  readonly contentType: string
  /** The metrics in the text format of Prometheus. */
  text(): Promise<string>
}

type Value = MetricValue<string>
type Labels = Record<string, string>

const prefix = 'aworld_train_gateway_'
const value = (number: number, labels: Labels = {}): Value => ({ value: number, labels })

/** Names from closed lists only; a list that grows without end is cut, so that a scrape stays small. */
const maxLabelValues = 64

function byName(tally: Tally, label: string): Value[] {
  const entries = Object.entries(tally).sort(([, a], [, b]) => b - a)
  const rest = entries.slice(maxLabelValues).reduce((sum, [, count]) => sum + count, 0)
  const values = entries.slice(0, maxLabelValues).map(([name, count]) => value(count, { [label]: name }))
  return rest > 0 ? [...values, value(rest, { [label]: 'more' })] : values
}

function histogramValues(name: string, histogram: Histogram, labels: Labels): Value[] {
  const { cumulative, count, sum } = histogram.read()
  const bucket = (le: string, number: number) => ({ ...value(number, { le, ...labels }), metricName: `${name}_bucket` })
  return [
    ...secondsBounds.map((bound, index) => bucket(String(bound), cumulative[index]!)),
    bucket('+Inf', count),
    { ...value(sum, labels), metricName: `${name}_sum` },
    { ...value(count, labels), metricName: `${name}_count` },
  ]
}

/**
 * All metrics of a gateway. They are read when they are asked for, from what the calls have counted: prom-client's own
 * counters would hash their labels at each call.
 */
export function createExposition(sources: ExpositionSources): Exposition {
  const { counters, observer, models, gate, eventLoop } = sources
  const registry = new Registry()

  function add(type: 'counter' | 'gauge' | 'histogram', name: string, help: string, read: (name: string) => Value[]): void {
    const full = `${prefix}${name}`
    const metric = {
      name: full,
      help,
      type,
      aggregator: 'sum',
      get: async () => ({ name: full, help, type, values: read(full) }),
      reset() {},
    }
    // A registry asks of a metric no more than these.
    registry.registerMetric(metric as never)
  }
  const counter = (name: string, help: string, read: () => Value[]) => add('counter', `${name}_total`, help, read)
  const gauge = (name: string, help: string, read: () => Value[]) => add('gauge', name, help, read)
  const cells = () => Array.from(observer.calls.cells())
  const ofCells = (name: 'duration' | 'firstToken' | 'queue') => (full: string) =>
    cells().flatMap((cell) => histogramValues(full, cell[name], { model: cell.model, dialect: cell.dialect }))

  counter('calls', 'Model calls that have ended, by the model that served them, dialect, outcome and error code.', () =>
    cells().flatMap(({ model, dialect, ends }) =>
      Array.from(ends.values(), ({ outcome, code, count }) => value(count, { model, dialect, outcome, code })),
    ),
  )
  add('histogram', 'call_duration_seconds', 'From the whole request until the call is answered and its turn is kept.', ofCells('duration'))
  add('histogram', 'time_to_first_token_seconds', 'From the whole request to the first sampled token.', ofCells('firstToken'))
  add('histogram', 'queue_duration_seconds', 'How long calls waited at the gate.', ofCells('queue'))
  counter('tokens', 'Tokens of recorded turns: prompt, cached, sampled by the policy, and of frozen models.', () =>
    cells().flatMap(({ model, dialect, tokens }) =>
      [
        ['prompt', tokens.prompt],
        ['cached', tokens.cached],
        ['sampled', tokens.sampled],
        ['frozen-prompt', tokens.frozenPrompt],
        ['frozen-completion', tokens.frozenCompletion],
      ].map(([kind, number]) => value(number as number, { model, dialect, kind: kind as string })),
    ),
  )
  counter('frozen_cost_dollars', 'Spent on frozen models that have a price.', () =>
    cells().map(({ model, dialect, cost }) => value(cost, { model, dialect })),
  )
  counter('sampled_tokens', 'Tokens that engines have handed over, those of turns without record too.', () => [
    value(counters.sampledTokens),
  ])
  counter('continuations', 'Calls whose prompt continued a recorded turn.', () => [value(counters.continuations)])
  counter('branches', 'Calls that began a new branch, by reason.', () => byName(counters.branches, 'reason'))
  counter('tolerated', 'Differences between a request and the record that did not matter, by kind.', () =>
    byName(counters.tolerated, 'kind'),
  )
  counter('ignored_fields', 'Request fields without effect; those of no API are counted together.', () => byName(counters.ignored, 'field'))
  counter('parse_issues', 'Tool calls that were sampled and delivered as text, by kind.', () => byName(counters.parseIssues, 'kind'))
  counter('abandoned_turns', 'Turns that their client did not wholly receive.', () => [value(counters.abandonedTurns)])
  counter('refused', 'Requests and sockets that did not become a call, by reason.', () => byName(counters.refusals, 'reason'))
  gauge('in_flight', 'Calls past the gate.', () => [value(gate.inside())])
  gauge('waiting', 'Calls held at the gate.', () => [value(gate.waiting())])
  gauge('oldest_waiting_seconds', 'How long the first of them has been held.', () => [value(gate.oldestWaitingMs() / 1_000)])
  gauge('paused', '1 while calls are held.', () => [value(Number(gate.paused()))])
  gauge('draining', '1 while the gateway is about to stop.', () => [value(Number(sources.draining()))])
  gauge('sessions', 'Attempts with open URLs.', () => [value(sources.sessions())])
  gauge('sockets', 'Open connections of clients.', () => [value(sources.sockets())])
  gauge('weight_version', 'Version of the weights that sample.', () =>
    models.all.flatMap((model) => (model.kind === 'frozen' ? [] : [value(model.engine.weightVersion(), { model: model.name })])),
  )
  const replicas = () =>
    models.all.flatMap((model) =>
      model.kind === 'frozen'
        ? []
        : (model.engine.health?.().replicas ?? []).map((replica) => ({ ...replica, labels: { model: model.name, replica: replica.name } })),
    )
  gauge('replica_ready', '1 for a server that takes calls.', () => replicas().map(({ ready, labels }) => value(Number(ready), labels)))
  gauge('replica_in_flight', 'Calls under way, by server.', () => replicas().map(({ inFlight, labels }) => value(inFlight, labels)))
  gauge('replica_queued', 'Calls that wait for a server.', () => replicas().map(({ queued, labels }) => value(queued, labels)))
  gauge('replica_oldest_queued_seconds', 'How long the first of them has waited.', () =>
    replicas().map(({ oldestQueuedMs, labels }) => value(oldestQueuedMs / 1_000, labels)),
  )
  gauge('event_loop_delay_p99_seconds', 'Of the time since the scrape before.', () => {
    const p99 = eventLoop.percentile(99) / 1e9
    eventLoop.reset()
    return [value(Number.isFinite(p99) ? p99 : 0)]
  })
  gauge('resident_memory_bytes', 'Resident memory of the process.', () => [value(process.memoryUsage.rss())])
  counter('process_cpu_seconds', 'User and system time of the process.', () => {
    const { user, system } = process.cpuUsage()
    return [value((user + system) / 1e6)]
  })

  return { contentType: registry.contentType, text: () => registry.metrics() }
}
