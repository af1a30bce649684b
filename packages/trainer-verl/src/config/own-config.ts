import { describeIssues, expandDots, fieldsOf, isTree, type KeyTree, LocalConfig, setAt } from '@aworld-train/training'
import type { z } from 'zod'
import { VerlSettings } from './verl-settings.ts'

/** Our keys of a configuration: those of any run, and those of a run with verl. */
const OwnConfig = VerlSettings.extend({
  training: LocalConfig.shape.training,
  sampling: LocalConfig.shape.sampling,
  engine: LocalConfig.shape.engine,
})

/** The key of a configuration under which everything is ours. */
export const ownBlock = 'aworldTrain'

/** Sections that both have: ours are spelt in camelCase. */
const shared: Readonly<Record<string, readonly string[]>> = {
  data: fieldsOf(OwnConfig.shape.data),
  reward: fieldsOf(OwnConfig.shape.reward),
}

/** Keys of a configuration at its top that are ours. */
export const ownSections: readonly string[] = [ownBlock, ...Object.keys(OwnConfig.shape)]

export interface SeparatedConfig {
  /** The part in verl's keys, as the user wrote it. */
  readonly verl: KeyTree
  /** The part in our keys; the block wins over the same key outside of it. */
  readonly own: KeyTree
}

/** Cuts a configuration into verl's keys and ours. */
export function separateConfig(configuration: KeyTree): SeparatedConfig {
  const tree = expandDots(configuration)
  const verl: Record<string, unknown> = {}
  const own: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(tree)) {
    if (key === ownBlock) continue
    if (key in shared && isTree(value)) {
      for (const [name, member] of Object.entries(value)) setAt(shared[key]!.includes(name) ? own : verl, [key, name], member)
    } else if (Object.hasOwn(OwnConfig.shape, key)) own[key] = value
    else verl[key] = value
  }
  const block = tree[ownBlock]
  if (isTree(block)) for (const [key, value] of Object.entries(block)) setAt(own, [key], structuredClone(value))
  return { verl, own }
}

/** Our keys, checked: settings, and a sentence for every problem. */
export function readOwnConfig(own: KeyTree): { readonly settings: VerlSettings; readonly problems: readonly string[] } {
  const parsed = OwnConfig.safeParse(own)
  if (!parsed.success)
    return { settings: VerlSettings.parse({}), problems: describeIssues(parsed.error, { schema: OwnConfig, value: own }) }
  const { training, sampling, engine: _, ...settings } = parsed.data as z.infer<typeof OwnConfig>
  const isSet = (section: string, key: string) => isTree(own[section]) && own[section][key] !== undefined
  return {
    problems: [],
    settings: {
      ...settings,
      ...(isSet('sampling', 'maxTokens') ? { maxCompletionTokens: sampling.maxTokens } : {}),
      ...(isSet('training', 'incompleteEpisodes') ? { incompleteEpisodes: training.incompleteEpisodes } : {}),
      ...(isSet('training', 'logprobCheck') ? { logprobCheck: { tolerance: training.logprobCheck.tolerance } } : {}),
    },
  }
}
