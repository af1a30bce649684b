import { readFileSync } from 'node:fs'
import type { ModelConfig } from '../model-config.ts'
import type { ParameterTable } from '../parameter-table.ts'

interface GoldenLoss {
  readonly kind: 'sft' | 'ppo-clip'
  readonly aggregation: 'token-mean' | 'sequence-mean'
  readonly loss: number
  readonly gradNorm: number
  readonly kl: number
  readonly entropy: number
  readonly clipFraction: number
  /** In the order of the parameter table. */
  readonly gradient: Float32Array
}

interface GoldenRow {
  readonly tokenIds: Int32Array
  readonly lossMask: Uint8Array
  readonly advantage: number
  readonly rollout: Float32Array
  readonly reference: Float32Array
  readonly logprobs: Float32Array
}

/** Numbers of PyTorch in float64 for one model, made by make_goldens.py. */
export interface Golden {
  readonly model: ModelConfig
  readonly seed: number
  readonly temperature: number
  readonly ppo: { readonly clipLow: number; readonly clipHigh: number; readonly klCoefficient: number; readonly entropyCoefficient: number }
  readonly rows: readonly GoldenRow[]
  readonly losses: Readonly<Record<string, GoldenLoss>>
}

export const goldenNames = ['gqa-tied', 'mha-untied-plain-heads', 'long-one-key-head', 'untied-temperature', 'beyond-one-block'] as const

const floats = (text: string): Float32Array => {
  const bytes = Buffer.from(text, 'base64')
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
}

export function readGolden(name: (typeof goldenNames)[number]): Golden {
  const raw = JSON.parse(readFileSync(new URL(`./${name}.json`, import.meta.url), 'utf8'))
  return {
    ...raw,
    rows: raw.rows.map((row: Record<string, never>) => ({
      tokenIds: Int32Array.from(row['tokenIds']!),
      lossMask: Uint8Array.from(row['lossMask']!),
      advantage: row['advantage'],
      rollout: floats(row['rollout']!),
      reference: floats(row['reference']!),
      logprobs: floats(row['logprobs']!),
    })),
    losses: Object.fromEntries(
      Object.entries<Record<string, never>>(raw.losses).map(([key, loss]) => [key, { ...loss, gradient: floats(loss['gradient']!) }]),
    ),
  }
}

/** Numbers in [0, 1): a linear congruential generator (Numerical Recipes), the same as in make_goldens.py. */
export function createNumbers(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** The parameters that the goldens were made with: matrices uniform in ±0.5, norms in 1 ± 0.2. */
export function goldenParameters({ parameters, count }: ParameterTable, seed: number): Float32Array {
  const next = createNumbers(seed)
  const values = new Float32Array(count)
  for (const { shape, offset, size } of parameters) {
    const isNorm = shape.length === 1
    for (let i = 0; i < size; i++) {
      const value = Math.fround((next() * 2 - 1) * (isNorm ? 0.2 : 0.5))
      values[offset + i] = isNorm ? value + 1 : value
    }
  }
  return values
}
