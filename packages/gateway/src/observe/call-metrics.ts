import { Counter, Histogram, type Registry } from 'prom-client'

export const metricPrefix = 'aworld_train_gateway_'

/** Seconds, from the overhead of a short answer to a completion of hours. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800]

/** Metrics of calls. Their labels are models of the configuration and our own dialects, so that their number is bounded. */
export function createCallMetrics(registry: Registry) {
  const common = (name: string, help: string) => ({ name: `${metricPrefix}${name}`, help, registers: [registry] })
  const seconds = (name: string, help: string) =>
    new Histogram({ ...common(`${name}_seconds`, help), labelNames: ['model', 'dialect'], buckets })
  return {
    calls: new Counter({
      ...common('calls_total', 'Model calls that have ended, by the model that served them, dialect, outcome and error code.'),
      labelNames: ['model', 'dialect', 'outcome', 'code'],
    }),
    duration: seconds('call_duration', 'From the whole request until the call is answered and its turn is kept.'),
    firstToken: seconds('time_to_first_token', 'From the whole request to the first sampled token.'),
    queue: seconds('queue_duration', 'How long calls waited at the gate.'),
    tokens: new Counter({
      ...common('tokens_total', 'Tokens of recorded turns: prompt, cached, sampled by the policy, and of frozen models.'),
      labelNames: ['model', 'dialect', 'kind'],
    }),
    cost: new Counter({
      ...common('frozen_cost_dollars_total', 'Spent on frozen models that have a price.'),
      labelNames: ['model', 'dialect'],
    }),
  }
}

export type CallMetrics = ReturnType<typeof createCallMetrics>
