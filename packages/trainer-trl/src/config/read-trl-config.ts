import { dirname, relative, resolve } from 'node:path'
import type { ReadConfigOptions } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { contextLengthOf } from '@aworld-train/run'
import { expandDots, isTree, type KeyTree, ownBlock, ownKeysOf, readConfigFile, readOwnConfig, setAt } from '@aworld-train/training'
import { askTrl } from './ask-trl.ts'
import { renderGeneralTerms } from './general-terms.ts'
import type { TrlConfig } from './trl-config.ts'
import { TrlSettings } from './trl-settings.ts'

const ownKeys = ownKeysOf(TrlSettings)

/** Reads a configuration in fields of GRPOConfig, with those of peft in `lora`, in our keys, or both. TRL's own win over ours. */
export async function readTrlConfig(source: unknown, options: ReadConfigOptions): Promise<TrlConfig> {
  const { baseDirectory, overrides = {}, findPython, signal } = options
  const { tree, directory, where, problems } = readSource(source, resolve(baseDirectory))
  const { own, fields: written, lora } = separate(tree)
  if (overrides.seed !== undefined) own['seed'] = overrides.seed
  if (overrides.model !== undefined) setAt(own, ['model', 'path'], overrides.model)
  const terms = renderGeneralTerms(own)
  const fields = { ...terms.fields, ...written, ...(overrides.steps === undefined ? {} : { max_steps: overrides.steps }) }
  const { settings, training, problems: ownProblems } = readOwnConfig(TrlSettings, own)
  const stratify = training?.stratify ?? null
  const python = (await findPython?.(settings.python)) ?? null
  const answer = python === null ? null : await askTrl({ configuration: fields, lora }, { python, signal })
  const model = settings.model.path
  const native = settings.reward.native ? ['reward.native leaves scoring to TRL, which has no reward here; pass rewardFunc.'] : []
  const tokens = promptTokens(settings, fields, model === null ? null : contextLengthOf(resolve(directory, model)))
  return {
    directory,
    settings,
    fields,
    lora,
    stratify,
    exact: answer?.exact ?? false,
    version: answer?.version ?? null,
    names: {
      trainFiles: settings.data.trainFiles,
      testFiles: settings.data.testFiles,
      promptKey: settings.data.promptKey,
      reward: { path: settings.reward.path, name: settings.reward.name },
      model,
    },
    usesModelTemplate: true,
    longestPrompt: tokens === null ? null : { tokens, leftOut: false },
    identity: [fields, lora, stratify],
    notes: [...terms.notes, ...(answer?.notes ?? [])],
    problems: [...problems, ...ownProblems, ...terms.problems, ...native, ...(answer?.problems ?? [])].map((problem) =>
      where === null ? problem : `${where}: ${problem}`,
    ),
  }
}

interface Source {
  readonly tree: KeyTree
  readonly directory: string
  /** The file that problems are placed in. */
  readonly where: string | null
  readonly problems: readonly string[]
}

function readSource(source: unknown, base: string): Source {
  if (source === undefined) return { tree: {}, directory: base, where: null, problems: [] }
  if (typeof source !== 'string') {
    if (isTree(source)) return { tree: source, directory: base, where: null, problems: [] }
    return {
      tree: {},
      directory: base,
      where: null,
      problems: ["The configuration is no object; give GRPOConfig's fields, or a file of them."],
    }
  }
  const file = resolve(base, source)
  const where = relative(base, file).startsWith('..') ? file : relative(base, file)
  try {
    return { tree: readConfigFile(file) as KeyTree, directory: dirname(file), where, problems: [] }
  } catch (error) {
    if (!(error instanceof TrainError)) throw error
    return { tree: {}, directory: dirname(file), where: null, problems: [error.message] }
  }
}

/** Cuts a configuration into our keys, GRPOConfig's fields and peft's; the block of ours wins over the same key outside of it. */
function separate(tree: KeyTree): { own: Record<string, unknown>; fields: Record<string, unknown>; lora: KeyTree | null } {
  const { [ownBlock]: block, lora, ...rest } = expandDots(tree)
  const own: Record<string, unknown> = {}
  const fields: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(rest)) (ownKeys.includes(key) ? own : fields)[key] = value
  if (isTree(block)) for (const [key, value] of Object.entries(block)) setAt(own, [key], structuredClone(value))
  return { own, fields, lora: isTree(lora) ? lora : null }
}

/** Longest prompt in tokens; `null` where the model's context is not known. */
export function promptTokens(settings: TrlSettings, fields: TrlConfig['fields'], context: number | null): number | null {
  if (settings.maxPromptTokens !== null) return settings.maxPromptTokens
  return context === null ? null : context - completionTokens(fields, context)
}

/** Longest response of a row: TRL's field, else half of the context. */
export function completionTokens(fields: TrlConfig['fields'], context: number | null): number {
  const set = fields['max_completion_length']
  return typeof set === 'number' ? set : context === null ? 256 : Math.floor(context / 2)
}
