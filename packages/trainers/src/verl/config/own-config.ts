import { suggest } from '@aworld-train/core'
import { fieldsOf, isOurMember, isSet, type KeyTree, type OwnConfig, ownKeysOf, readOwnConfig } from '@aworld-train/training'
import { VerlSettings } from './verl-settings.ts'

/** Sections that both have, with our members of them, which are spelt in camelCase. */
export const shared: Readonly<Record<string, readonly string[]>> = {
  data: fieldsOf(VerlSettings.shape.data),
  reward: fieldsOf(VerlSettings.shape.reward),
}

/** Keys of a configuration at its top that are ours. */
export const ownKeys = ownKeysOf(VerlSettings)

/** Whether a dotted path of an override is a key of ours. */
export function isOwnPath(path: string): boolean {
  const [section = '', member = ''] = path.split('.')
  const ours = shared[section]
  return ours ? isOurMember(member, ours) : ownKeys.includes(section) || suggest(section, ownKeys) !== null
}

/** verl's counterpart of drawing until enough groups teach. */
const filter = "verl's algorithm.filter_groups.enable, which draws until enough groups have rewards that differ"

/** Checks our keys: settings, and one sentence for each problem. */
export function readOwn(own: KeyTree): Omit<OwnConfig<VerlSettings>, 'training'> {
  const { training, ...rest } = readOwnConfig(VerlSettings, own, { teachingPrompts: filter, maxPrompts: filter })
  if (training === null || !isSet(own, 'training', 'logprobCheck')) return rest
  return { ...rest, settings: { ...rest.settings, logprobCheck: { tolerance: training.logprobCheck.tolerance } } }
}
