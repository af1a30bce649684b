import type { z } from 'zod'
import { acceptedPart } from './accepted-part.ts'
import { isTree, type KeyTree, valueAt } from './key-tree.ts'
import { LocalConfig, TrainingSettings } from './local-config.ts'
import type { InertSettings } from './setting-name.ts'
import type { TrainerSettings } from './trainer-settings.ts'

const { training, sampling, engine, policies } = LocalConfig.shape
/** Settings of the engine in the box alone. They are checked, but no framework reads them. */
const box = { engine }
const general = { training, sampling, policies, ...box }

/** Names of the settings that no framework reads. */
export const keysOfTheBox: readonly string[] = Object.keys(box)

/** Our names at the top of a framework's configuration: those of `schema`, and those of any run. */
export const ownKeysOf = (schema: z.ZodObject): readonly string[] => [...Object.keys(schema.shape), ...Object.keys(general)]

export interface OwnConfig<Settings> {
  readonly settings: Settings
  /** Our keys as they were written, without those that have a problem. */
  readonly written: KeyTree
  /** Terms of any run's training; `null` if there are problems. */
  readonly training: LocalConfig['training'] | null
  readonly problems: readonly string[]
  /** Sections of ours with a problem. */
  readonly failed: readonly string[]
}

/** Reads and checks our keys of a framework's configuration: settings in terms of `schema`, and one sentence for each problem. */
export function readOwnConfig<Settings extends TrainerSettings>(
  schema: z.ZodObject & z.ZodType<Settings>,
  own: KeyTree,
  ofFramework: FrameworkKeys = {},
): OwnConfig<Settings> {
  const whole = schema.extend(general)
  const { written, data, problems, failed } = acceptedPart(whole, own)
  const { training, sampling, policies, ...rest } = data as Settings & Pick<LocalConfig, keyof typeof general>
  const ofSchema = Object.fromEntries(Object.entries(rest).filter(([key]) => !keysOfTheBox.includes(key))) as unknown as Settings
  const settings: Settings = {
    ...ofSchema,
    ...(isSet(own, 'sampling', 'maxTokens') ? { maxCompletionTokens: sampling.maxTokens } : {}),
    ...(isSet(own, 'training', 'incompleteEpisodes') ? { incompleteEpisodes: training.incompleteEpisodes } : {}),
    ...(isSet(own, 'training', 'ownReward') ? { ownReward: training.ownReward } : {}),
  }
  const why = 'the framework forms its groups itself, by settings of its own'
  const several = policiesProblems(Object.keys(policies))
  return {
    problems: [...problems, ...groupProblems(training, why, ofFramework), ...ownRewardProblems(settings), ...several],
    // With policies there is no model, and agents ask for policies that nobody serves.
    failed: several.length > 0 ? [...failed, 'policies', 'model'] : failed,
    written,
    training: problems.length > 0 ? null : training,
    settings,
  }
}

/** A sentence if rewards of single agents are to be weighed where the framework scores, which has none. */
function ownRewardProblems({ ownReward, reward }: TrainerSettings): string[] {
  if (ownReward === 0 || !reward.native) return []
  return [
    `training.ownReward is ${ownReward}, and with reward.native the framework scores rollouts as a whole. Leave it out, or set reward.native to false.`,
  ]
}

/** Settings for the forming of groups in our own loop. */
const groupKeys = ['maxStaleness', 'hardStaleness', 'firstSamples', 'solvedReward', 'teachingPrompts', 'maxPrompts'] as const
/** A framework's keys in place of these settings. */
export type FrameworkKeys = Partial<Readonly<Record<(typeof groupKeys)[number], string>>>

/** One sentence for each setting of group forming that is written although the training forms groups otherwise; `why` says how. */
export function groupProblems(written: LocalConfig['training'], why: string, ofFramework: FrameworkKeys = {}): string[] {
  const defaults = TrainingSettings.parse({})
  return groupKeys.flatMap((key) =>
    written[key] === defaults[key]
      ? []
      : `training.${key} is ${written[key]}, which is for trainers that run our own loop (local, tinker): here ${why}. Leave it out${ofFramework[key] ? `, and set ${ofFramework[key]}` : ''}.`,
  )
}

/** A sentence if policies are configured for a framework, which trains one. It says how several are trained in turns. */
const policiesProblems = (names: readonly string[]): string[] =>
  names.length === 0
    ? []
    : [
        `policies names ${names.map((name) => `"${name}"`).join(', ')}, which is for trainers that run our own loop (local, tinker): the framework trains one policy. Write it in model. Write each other one in models, as a frozen model behind "npx aworld-train serve" or vLLM over the folder that export wrote. Then change over, as docs/3.guides/training-swarms.md has it.`,
      ]

/**
 * A sentence if a loss of one's own is configured for a framework, which computes its own; `setting` is the framework's setting for that.
 */
export function lossProblems({ loss }: KeyTree, title: string, setting: string): string[] {
  if (loss === undefined || loss === null) return []
  const shown = typeof loss === 'string' ? JSON.stringify(loss) : 'a function'
  return [
    `training.loss is ${shown}, which is for trainers that run our own loop (local, tinker): ${title} computes its loss in Python, and ${setting} chooses it. Leave it out.`,
  ]
}

/** Notes on written settings that `title` does not read. */
export function inertNotes(own: KeyTree, inert: InertSettings, title: string): string[] {
  return Object.entries(inert).flatMap(([name, why]) => {
    return valueAt(own, name) === undefined ? [] : [`${name} has no effect with ${title}: ${why}.`]
  })
}

/** Whether a key of a section was written, rather than filled in by default. */
export const isSet = (tree: KeyTree, section: string, key: string): boolean => isTree(tree[section]) && tree[section][key] !== undefined
