import type { ServerResponse } from 'node:http'
import type { Registry } from 'prom-client'
import type { Gate } from '../gate.ts'
import type { ModelTable } from '../models/model-table.ts'
import { sendText } from '../stages/encode.ts'

export interface StateParts {
  readonly models: ModelTable
  readonly gate: Gate
  readonly metrics: Registry
  readonly draining: () => boolean
}

/** Reasons why the gateway is not ready for new work; empty if it is. */
export function notReady({ models, gate, draining }: Omit<StateParts, 'metrics'>): string[] {
  const reasons: string[] = []
  if (draining()) reasons.push('the gateway is about to stop')
  if (gate.paused()) reasons.push('calls are held while weights are updated')
  for (const model of models.all) {
    const health = model.kind === 'frozen' ? undefined : model.engine.health?.()
    if (health && !health.ready) reasons.push(`model "${model.name}": ${health.reason ?? 'its engine is not ready'}`)
  }
  return reasons
}

const json = (response: ServerResponse, status: number, value: object) =>
  sendText(response, status, 'application/json', JSON.stringify(value), { 'cache-control': 'no-store' })

/** Answers the paths that need no key: `health` of the process, whether it is `ready` for work, and its `metrics`. */
export async function sendState(kind: 'health' | 'ready' | 'metrics', parts: StateParts, response: ServerResponse): Promise<void> {
  const { models, gate, metrics } = parts
  if (kind === 'metrics') sendText(response, 200, metrics.contentType, await metrics.metrics())
  else if (kind === 'health') {
    const status = gate.paused() ? 'paused' : 'ok'
    json(response, 200, { status, inFlight: gate.inside(), waiting: gate.waiting(), weightVersion: models.weightVersion() })
  } else {
    const reasons = notReady(parts)
    const ready = reasons.length === 0
    json(response, ready ? 200 : 503, { status: ready ? 'ready' : 'not-ready', reasons })
  }
}
