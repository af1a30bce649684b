import type { StepSummary } from '@aworld-train/core'
import { brief, fixed, integer, percent, seconds } from './format.ts'
import { partsOf } from './roles.tsx'

/** A metric as a small chart. */
export interface Multiple {
  readonly name: string
  readonly values: readonly (number | null)[]
  readonly note: string
  /** Whether the scale begins at 0. */
  readonly zero?: boolean
  readonly format?: (value: number) => string
}

/** Metrics of our trainers, with their words. A trainer that has none of these shows its own. */
const named: readonly (readonly [metric: string, multiple: Omit<Multiple, 'values'>])[] = [
  ['entropy', { name: 'Entropy', note: 'nats a token', zero: true }],
  ['loss', { name: 'Loss', note: 'policy gradient' }],
  ['gradNorm', { name: 'Gradient norm', note: 'unclipped', zero: true }],
  ['clipFraction', { name: 'Clipped', note: 'of tokens', zero: true, format: (value) => percent(value, 2) }],
  ['maxLogprobDifference', { name: 'Logprob gap', note: 'greatest', zero: true }],
  ['learningRate', { name: 'Learning rate', note: 'an update', zero: true }],
  ['stepMs', { name: 'Step', note: 'wall time', zero: true, format: seconds }],
]

/** Charts of a run: the most telling ones, and every other metric that its trainer reported. */
export function multiplesOf(steps: readonly StepSummary[]): { main: Multiple[]; others: Multiple[] } {
  const metric = (name: string) => steps.map(({ metrics }) => metrics?.[name] ?? null)
  const groups = steps.at(-1)!.groups
  const has = (values: readonly (number | null)[]) => values.some((value) => value !== null)
  const counted: Multiple[] = [
    {
      name: 'Groups that teach',
      values: steps.map((step) => step.groups.mixed),
      note: `of ${groups.right + groups.mixed + groups.wrong}`,
      zero: true,
      format: integer,
    },
  ]
  const sizes: Multiple[] = [
    {
      name: 'Tool calls',
      values: steps.map(({ toolCalls }) => toolCalls),
      note: 'a rollout',
      zero: true,
      format: (value) => fixed(value, 2),
    },
    { name: 'Tokens', values: steps.map(({ tokens }) => tokens), note: 'a rollout', zero: true, format: (value) => fixed(value, 1) },
  ]
  const known = named.map(([name, multiple]) => ({ ...multiple, values: metric(name) })).filter(({ values }) => has(values))
  const words = new Set(named.map(([name]) => name))
  const names = [...new Set(steps.flatMap(({ metrics }) => Object.keys(metrics ?? {})))].filter((name) => !words.has(name)).sort()
  const reported = names.map((key) => {
    const parts = partsOf(key)
    const multiple: Multiple = {
      name: parts ? `${parts.name}: ${parts.metric}` : key,
      values: metric(key),
      note: parts?.kind ?? 'as reported',
      ...(key.endsWith('Ms') ? { format: seconds } : { format: brief }),
    }
    return { multiple, isRoleReward: parts?.kind === 'role' && parts.metric === 'reward' }
  })
  const rewards = reported.filter(({ isRoleReward }) => isRoleReward).map(({ multiple }) => multiple)
  const others = reported.filter(({ isRoleReward }) => !isRoleReward).map(({ multiple }) => multiple)
  const main = [...counted, ...rewards, ...known.slice(0, 4), ...sizes, ...known.slice(4)]
  // Another trainer has metrics of its own, of which the first fill the page.
  const missing = Math.max(0, 10 - main.length)
  return { main: [...main, ...others.slice(0, missing)], others: others.slice(missing) }
}
