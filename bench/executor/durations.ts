import { createHash } from 'node:crypto'

/** Rollouts whose durations have a long tail: lognormal, half of the log-variance from the group, and a few that hang until a limit. */
export interface DurationShape {
  readonly medianSeconds: number
  /** Standard deviation of the logarithm. */
  readonly sigma: number
  readonly mostSeconds: number
  /** Part of the rollouts that take `mostSeconds`. */
  readonly hanging: number
}

export const longTail: DurationShape = { medianSeconds: 120, sigma: 1, mostSeconds: 1800, hanging: 0.004 }

/** Seconds that a rollout takes, from its key `.../group/sample` and the seed alone. */
export function durationOf(key: string, seed: number, { medianSeconds, sigma, mostSeconds, hanging }: DurationShape = longTail): number {
  const group = key.slice(0, key.lastIndexOf('/'))
  const [uniform, ...own] = uniforms(`${seed}/${key}`)
  if (uniform! < hanging) return mostSeconds
  const [, ...shared] = uniforms(`${seed}/${group}`)
  return Math.min(mostSeconds, medianSeconds * Math.exp(sigma * Math.SQRT1_2 * (gauss(shared) + gauss(own))))
}

function uniforms(text: string): number[] {
  const digest = createHash('sha256').update(text).digest()
  return [0, 4, 8].map((at) => (digest.readUInt32LE(at) + 0.5) / 2 ** 32)
}

/** A normal number from two uniform ones (Box and Muller). */
const gauss = ([a, b]: readonly number[]) => Math.sqrt(-2 * Math.log(a!)) * Math.cos(2 * Math.PI * b!)
