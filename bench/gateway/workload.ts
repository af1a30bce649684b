/** One rollout: how long the engine takes for each of its turns, in milliseconds. */
export type RolloutPlan = readonly number[]

export interface Workload {
  readonly rollouts: readonly RolloutPlan[]
  readonly turns: number
  /** Seconds that the slowest rollout takes alone: nothing can end sooner while all run at once. */
  readonly bound: number
}

/** Numbers from 0 to 1, the same for a seed everywhere (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/**
 * Rollouts of 1 to 24 turns (log-normal, median 5), each turn served in a log-normal time (median 300 ms, sigma 0.7, at most
 * 4 s). `rampSeconds` is the time over which they start, part of the bound.
 */
export function makeWorkload(count: number, rampSeconds: number, seed = 42): Workload {
  const random = randomOf(seed)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const rollouts = Array.from({ length: count }, () => {
    const turns = Math.max(1, Math.min(24, Math.round(Math.exp(Math.log(5) + 0.7 * normal()))))
    return Array.from({ length: turns }, () => Math.round(Math.min(4000, 300 * Math.exp(0.7 * normal()))))
  })
  const ends = rollouts.map((plan, index) => (rampSeconds * index) / count + plan.reduce((sum, each) => sum + each, 0) / 1000)
  return { rollouts, turns: rollouts.reduce((sum, plan) => sum + plan.length, 0), bound: Math.max(...ends) }
}
