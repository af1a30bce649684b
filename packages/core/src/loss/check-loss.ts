import type { LossAggregation, LossDefinition } from '../contracts/learner.ts'
import { TrainError } from '../protocol/errors.ts'
import { didYouMean } from '../text/suggest.ts'

/** The numbers that each kind of loss needs. */
const kinds = {
  sft: [],
  'ppo-clip': ['clipLow', 'clipHigh', 'klCoefficient', 'entropyCoefficient'],
  linear: ['entropyCoefficient'],
} as const satisfies Record<LossDefinition['kind'], readonly string[]>

const aggregations = ['token-mean', 'sequence-mean'] as const satisfies readonly LossAggregation[]

/** Throws CONFIG_INVALID for a loss that no learner knows; a caller in JavaScript may write anything. */
export function checkLoss(loss: LossDefinition): void {
  const definition = (loss ?? {}) as Readonly<Record<string, unknown>>
  const kind = refuseOther('loss', definition['kind'], Object.keys(kinds) as LossDefinition['kind'][])
  refuseOther('aggregation of a loss', definition['aggregation'], aggregations)
  for (const name of kinds[kind]) {
    if (Number.isFinite(definition[name])) continue
    throw new TrainError('CONFIG_INVALID', `${name} of the loss "${kind}" is ${String(definition[name])}; it must be a number.`)
  }
}

function refuseOther<Name extends string>(what: string, value: unknown, names: readonly Name[]): Name {
  if (names.includes(value as Name)) return value as Name
  const list = names.map((name) => `"${name}"`).join(' or ')
  const meant = typeof value === 'string' ? didYouMean(value, names) : ''
  throw new TrainError('CONFIG_INVALID', `There is no ${what} ${JSON.stringify(value) ?? 'undefined'}; use ${list}.${meant}`)
}
