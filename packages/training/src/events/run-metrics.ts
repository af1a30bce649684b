import type { RunEvent, RunProgress } from '@aworld-train/core'
import { Counter, Gauge, Registry } from 'prom-client'
import { curveOf } from './curve-name.ts'

/** Metrics of a training for Prometheus. The gateway adds those of calls. */
export interface RunMetrics {
  readonly registry: Registry
  read(event: RunEvent): void
}

/** Creates the metrics of a training, starting from the steps in the store. Counters are of this process. */
export function createRunMetrics(store: Pick<RunProgress, 'steps'>): RunMetrics {
  const registry = new Registry()
  const common = (name: string, help: string) => ({ name: `aworld_train_run_${name}`, help, registers: [registry] })
  const step = new Gauge(common('step', 'The last step that was trained.'))
  const weightVersion = new Gauge(common('weight_version', 'The version of the weights that sample.'))
  const stepMetrics = new Gauge({ ...common('step_metric', 'The metrics of the last step, by name.'), labelNames: ['metric'] })
  const evaluations = new Gauge({
    ...common('evaluation_metric', 'The metrics of the last evaluation of each kind, by name.'),
    labelNames: ['evaluation', 'metric'],
  })
  const running = new Gauge(common('rollouts_running', 'Rollouts that have begun and not ended.'))
  const ended = new Counter({
    ...common('rollouts_total', 'Rollouts that have ended, by split and stop reason.'),
    labelNames: ['split', 'stop_reason'],
  })
  const sampled = new Counter({
    ...common('sampled_tokens_total', 'Tokens that were sampled in ended rollouts, by split.'),
    labelNames: ['split'],
  })
  const warnings = new Counter({ ...common('warnings_total', 'Warnings, by code.'), labelNames: ['code'] })

  function setStep({ step: number, weightVersion: version, metrics }: ShownStep): void {
    step.set(number)
    weightVersion.set(version)
    stepMetrics.reset()
    for (const [metric, value] of Object.entries(metrics)) stepMetrics.set({ metric }, value)
  }

  const last = store.steps().at(-1)
  if (last) setStep(last)
  return {
    registry,
    read(event) {
      if (event.type === 'step-end') setStep(event)
      else if (event.type === 'weights-updated') weightVersion.set(event.weightVersion)
      else if (event.type === 'evaluation-end')
        for (const [metric, value] of Object.entries(event.metrics)) evaluations.set({ evaluation: curveOf(event.name), metric }, value)
      else if (event.type === 'rollout-start') running.inc()
      else if (event.type === 'rollout-end') {
        running.dec()
        ended.inc({ split: event.split, stop_reason: event.stopReason })
        sampled.inc({ split: event.split }, event.sampledTokens)
      } else if (event.type === 'warning-raised') warnings.inc({ code: event.code })
    },
  }
}

interface ShownStep {
  readonly step: number
  readonly weightVersion: number
  readonly metrics: Readonly<Record<string, number>>
}
