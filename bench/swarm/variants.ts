import type { WarmUpRequest } from 'aworld-train'
import { planner } from '../../examples/source-readers/agents.ts'
import definition from '../../examples/source-readers/aworld-train.config.ts'
import { planning, reading } from '../../examples/source-readers/demonstrations.ts'
import { warmUp } from '../../examples/source-readers/warm-up.ts'
import { alone, warmUpAlone } from './alone.ts'

/** Each makes the model of variants with one policy. */
export const warmUps = {
  alone: warmUpAlone,
  shared: (request: WarmUpRequest) => warmUp(request, [planning, reading], 600),
}

/** A way to train for the task of `examples/source-readers`. */
export interface Variant {
  readonly title: string
  /** It trains with seeds 1 to this. */
  readonly seeds: number
  /** The model of a variant with one policy. Those with two begin with the ones that the example ships. */
  readonly model?: { readonly name: keyof typeof warmUps; readonly context: number }
  /** What stands over the example's definition; `model` is the folder of that model. */
  readonly change: (model: string) => object
}

const { config } = definition as { config: { policies: { lead: object; reader: object }; training: object } }
const { policies, ...rest } = config
const { lead, reader } = policies
const frozen = { trainable: false }
const ownReward = (share: number) => () => ({ config: { ...config, training: { ...config.training, ownReward: share } } })
const onePolicy = (agent: object) => (path: string) => ({ agent, config: { ...rest, model: { path } } })

export const variants: Readonly<Record<string, Variant>> = {
  both: { title: 'both trained', seeds: 10, change: () => ({}) },
  lead: {
    title: 'lead trained',
    seeds: 2,
    change: () => ({ config: { ...config, policies: { lead, reader: { ...reader, ...frozen } } } }),
  },
  reader: {
    title: 'reader trained',
    seeds: 2,
    change: () => ({ config: { ...config, policies: { lead: { ...lead, ...frozen }, reader } } }),
  },
  short: { title: 'one agent, 256', seeds: 2, model: { name: 'alone', context: 256 }, change: onePolicy(alone) },
  roomy: { title: 'one agent, 512', seeds: 2, model: { name: 'alone', context: 512 }, change: onePolicy(alone) },
  shared: {
    title: 'one policy',
    seeds: 2,
    model: { name: 'shared', context: 512 },
    change: onePolicy(planner),
  },
  'own-half': { title: 'own reward 0.5', seeds: 5, change: ownReward(0.5) },
  'own-full': { title: 'own reward 1', seeds: 5, change: ownReward(1) },
}
