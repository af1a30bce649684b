import type { GenerateRequest } from '@aworld-train/core'
import { createFleet } from '../fleet/fleet.ts'
import type { Fleet, FleetCall, FleetOptions, FleetOutcome } from '../fleet/fleet-types.ts'
import { vllmKind } from '../vllm/vllm-kind.ts'

/** A fleet with such quick probes that a test need not wait for them. */
export const quickFleet = (replicas: readonly string[], options: Omit<FleetOptions, 'replicas'> = {}): Promise<Fleet> =>
  createFleet(vllmKind(), { replicas, probeIntervalMs: 20, probeTimeoutMs: 10_000, unavailableMs: 30_000, raceMs: 30_000, ...options })

export interface Heard {
  readonly outcome: FleetOutcome
  readonly text: string
}

/** Makes one plain call and resolves to its outcome and the text of its answer. */
export async function send(
  fleet: Fleet,
  { affinity = 'one', path = '/answer', signal = new AbortController().signal }: Partial<FleetCall> & { signal?: AbortSignal } = {},
): Promise<Heard> {
  const chunks: Buffer[] = []
  const call: FleetCall = { path, affinity, stream: false, body: ({ salt }) => JSON.stringify({ salt }) }
  const handler = {
    onHead() {},
    onData(chunk: Buffer) {
      chunks.push(chunk)
      return true
    },
  }
  const outcome = await fleet.send(call, handler, signal)
  return { outcome, text: Buffer.concat(chunks).toString('utf8') }
}

export const toyCall = (overrides: Partial<GenerateRequest> = {}): GenerateRequest => ({
  promptTokenIds: Int32Array.of(1, 2, 3),
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 16, stop: [], seed: 0 },
  random: { seed: 3, task: 'toy', sample: 0, turn: 0 },
  affinity: 'toy.0',
  ...overrides,
})
