import { isRecord, type RewardOutput, TrainError } from '@aworld-train/core'

/**
 * Checks the result of a reward: a finite number, `null` if it abstains, or `{ reward, scores, agents }` of these. Throws REWARD_INVALID for
 * any other.
 */
export function toRewardOutput(value: unknown, name: string): RewardOutput {
  if (value === null) return { reward: null, scores: {} }
  if (typeof value === 'number') return { reward: finite(value, name, 'returned'), scores: {} }
  if (!isRecord(value) || !('reward' in value)) throw invalid(value, name, 'returned')
  const { reward, scores = {}, agents, ...rest } = value as { reward: unknown; scores?: unknown; agents?: unknown }
  const extra = Object.keys(rest)
  if (extra.length > 0) {
    throw new TrainError(
      'REWARD_INVALID',
      `Reward "${name}" returned an object with "${extra[0]}"; return { reward, scores, agents } with numbers in scores and agents.`,
    )
  }
  return {
    reward: reward === null ? null : finite(reward, name, 'returned as reward'),
    scores: numbers(scores, name, { all: 'scores', one: 'score' }),
    ...(agents !== undefined && { agents: numbers(agents, name, { all: 'agents', one: 'reward of agent' }) }),
  }
}

function numbers(values: unknown, name: string, { all, one }: { readonly all: string; readonly one: string }): Record<string, number> {
  if (!isRecord(values)) throw invalid(values, name, `returned as ${all}`)
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, finite(value, name, `returned as ${one} "${key}"`)]))
}

function finite(value: unknown, name: string, what: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw invalid(value, name, what)
  return value
}

function invalid(value: unknown, name: string, what: string): TrainError {
  return new TrainError(
    'REWARD_INVALID',
    `Reward "${name}" ${what} ${describe(value)}; return a finite number, null to abstain, or { reward, scores, agents }.`,
    {
      details: { reward: name, value: describe(value) },
    },
  )
}

/** Describes any value briefly: its type and its first characters. */
export function describe(value: unknown): string {
  if (value === undefined || value === null) return `${value}`
  if (typeof value === 'number') return `${value}`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'symbol' || typeof value === 'bigint') return `a ${typeof value} (${String(value)})`
  let text: string
  try {
    text = JSON.stringify(value) ?? String(value)
  } catch {
    text = Object.prototype.toString.call(value)
  }
  const type = Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
  return `${type} (${text.length > 80 ? `${text.slice(0, 80)}…` : text})`
}
