import {
  copyOf,
  expandDots,
  fieldsOf,
  isSet,
  isTree,
  type KeyTree,
  type OwnConfig,
  ownBlock,
  ownKeysOf,
  readOwnConfig,
  setAt,
} from '@aworld-train/training'
import { VerlSettings } from './verl-settings.ts'

/** Sections that both have. Ours are spelt in camelCase. */
const shared: Readonly<Record<string, readonly string[]>> = {
  data: fieldsOf(VerlSettings.shape.data),
  reward: fieldsOf(VerlSettings.shape.reward),
}

const ownKeys = ownKeysOf(VerlSettings)

/** Keys of a configuration at its top that are ours. */
export const ownSections: readonly string[] = [ownBlock, ...ownKeys]

export interface SeparatedConfig {
  /** The part in verl's keys, as the user wrote it. */
  readonly verl: KeyTree
  /** The part in our keys. A key in the block wins over the same key outside of it. */
  readonly own: KeyTree
}

/** Splits a configuration into verl's keys and ours. */
export function separateConfig(configuration: KeyTree): SeparatedConfig {
  const tree = expandDots(configuration)
  const verl: Record<string, unknown> = {}
  const own: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(tree)) {
    if (key === ownBlock) continue
    if (key in shared && isTree(value)) {
      for (const [name, member] of Object.entries(value)) setAt(shared[key]!.includes(name) ? own : verl, [key, name], member)
    } else if (ownKeys.includes(key)) own[key] = value
    else verl[key] = value
  }
  const block = tree[ownBlock]
  if (isTree(block)) for (const [key, value] of Object.entries(block)) setAt(own, [key], copyOf(value))
  return { verl, own }
}

/** verl's counterpart of drawing until enough groups teach. */
const filter = "verl's algorithm.filter_groups.enable, which draws until enough groups have rewards that differ"

/** Checks our keys: settings, and one sentence for each problem. */
export function readOwn(own: KeyTree): Omit<OwnConfig<VerlSettings>, 'training'> {
  const { training, ...rest } = readOwnConfig(VerlSettings, own, { teachingPrompts: filter, maxPrompts: filter })
  if (training === null || !isSet(own, 'training', 'logprobCheck')) return rest
  return { ...rest, settings: { ...rest.settings, logprobCheck: { tolerance: training.logprobCheck.tolerance } } }
}
