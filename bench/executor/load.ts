import type { RolloutRequest } from '@aworld-train/core'
import { randomOf } from '../gateway/workload.ts'

/** Mean of a cycle that took 7,695 s one rollout after another (AWorld, arXiv 2508.20404), if it had 32. */
const meanSeconds = 7695 / 32
/** Deviation of the logarithm: the longest of 32 then takes 525 s in the mean, as long as that whole cycle with the executor. */
const sigma = 0.43
const secondsPerTurn = 30
/** The engine recognises the plan in the first 512 bytes of a request. */
const mostTurns = 32

export interface LoadOptions {
  readonly count: number
  readonly seed: number
  /** A second of a rollout takes this part of it; with 0 every rollout is one turn that the engine answers at once. */
  readonly scale: number
}

export interface PlannedRollout {
  readonly id: string
  /** Without `scale`. */
  readonly seconds: number
  /** Milliseconds, scaled, that the engine and then the tool take in each turn; the last calls no tool: `300:120 250:80 400`. */
  readonly plan: string
}

/** Rollouts that take 240 s in the mean, whatever their number; about two thirds of it for the engine and one third for tools. */
export function makeLoad({ count, seed, scale }: LoadOptions): PlannedRollout[] {
  const random = randomOf(seed)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const drawn = Array.from({ length: count }, () => Math.exp(sigma * normal()))
  const factor = (count * meanSeconds) / sumOf(drawn)
  return drawn.map((each, index) => {
    const seconds = each * factor
    if (scale === 0) return { id: `load-${index}`, seconds, plan: '0' }
    const turns = Math.min(mostTurns, Math.max(2, Math.round(seconds / secondsPerTurn)))
    const weights = Array.from({ length: 2 * turns - 1 }, (_, at) => (at % 2 === 0 ? 2 : 1) * (0.5 + random()))
    const unit = (seconds * scale * 1000) / sumOf(weights)
    const times = weights.map((weight) => Math.round(weight * unit))
    const plan = Array.from({ length: turns }, (_, turn) => times.slice(2 * turn, 2 * turn + 2).join(':')).join(' ')
    return { id: `load-${index}`, seconds, plan }
  })
}

/** What is requested of an executor, in seconds without `scale`, and the shortest time in which `slots` of them at once can do it. */
export function idealOf(load: readonly PlannedRollout[], slots: number) {
  const requestedSeconds = sumOf(load.map(({ seconds }) => seconds))
  const longestSeconds = Math.max(...load.map(({ seconds }) => seconds))
  return { requestedSeconds, longestSeconds, makespanSeconds: Math.max(longestSeconds, requestedSeconds / slots) }
}

export const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)

export const toRequest = (id: string, plan: string, group = id, sample = 0): RolloutRequest => ({
  version: 1,
  key: id,
  task: { version: 1, id: group, hash: group, input: `plan ${plan}`, data: {}, dataSource: 'bench', extraInfo: {} },
  group,
  sample,
  split: 'train',
  policy: 'bench',
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 512, stop: [], seed: 0 },
  limits: {},
})
