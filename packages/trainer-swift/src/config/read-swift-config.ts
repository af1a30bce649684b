import { existsSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import type { ReadConfigOptions } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { contextLengthOf } from '@aworld-train/run'
import { expandDots, isTree, type KeyTree, ownBlock, ownKeysOf, readConfigFile, readOwnConfig, setAt } from '@aworld-train/training'
import { askSwift } from './ask-swift.ts'
import { renderGeneralTerms } from './general-terms.ts'
import type { SwiftConfig } from './swift-config.ts'
import { SwiftSettings } from './swift-settings.ts'

const ownKeys = ownKeysOf(SwiftSettings)

/** Reads a configuration in arguments of `swift rlhf`, in our keys, or both. Swift's own win over ours; its `model` may be ours. */
export async function readSwiftConfig(source: unknown, options: ReadConfigOptions): Promise<SwiftConfig> {
  const { baseDirectory, overrides = {}, findPython, signal } = options
  const { tree, directory, where, problems } = readSource(source, resolve(baseDirectory))
  const { own, fields: written } = separate(tree)
  if (overrides.seed !== undefined) own['seed'] = overrides.seed
  if (overrides.model !== undefined) setAt(own, ['model', 'path'], overrides.model)
  const terms = renderGeneralTerms(own)
  const fields = withBatch({ ...terms.fields, ...written, ...(overrides.steps === undefined ? {} : { max_steps: overrides.steps }) })
  const { settings, training, problems: ownProblems } = readOwnConfig(SwiftSettings, own)
  const stratify = training?.stratify ?? null
  const python = (await findPython?.(settings.python)) ?? null
  const model = settings.model.path
  const answer =
    python === null ? null : await askSwift({ configuration: fields, model: model && folderOf(directory, model) }, { python, signal })
  const native = settings.reward.native ? ['reward.native leaves scoring to ms-swift, which has no reward here; pass rewardFunc.'] : []
  const tokens = promptTokens(settings, fields, model === null ? null : contextLengthOf(resolve(directory, model)))
  return {
    directory,
    settings,
    fields,
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
    identity: [fields, stratify],
    notes: [...terms.notes, ...(answer?.notes ?? [])],
    problems: [...problems, ...ownProblems, ...terms.problems, ...native, ...(answer?.problems ?? [])].map((problem) =>
      where === null ? problem : `${where}: ${problem}`,
    ),
  }
}

const batchKeys = ['per_device_train_batch_size', 'generation_batch_size', 'steps_per_generation', 'gradient_accumulation_steps']

/** Swift's own batch is one row, which no group fits; a batch of one group where the user says nothing of it. */
function withBatch(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (batchKeys.some((key) => fields[key] !== undefined)) return fields
  return { ...fields, per_device_train_batch_size: fields['num_generations'] ?? 8 }
}

/** A model's folder as swift is asked of it; a name of a hub stays. */
function folderOf(directory: string, model: string): string {
  const folder = resolve(directory, model)
  return existsSync(folder) ? folder : model
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
      problems: ['The configuration is no object; give arguments of swift rlhf, or a file of them.'],
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

/** Cuts a configuration into our keys and arguments of swift; the block of ours wins over the same key outside of it. */
function separate(tree: KeyTree): { own: Record<string, unknown>; fields: Record<string, unknown> } {
  const { [ownBlock]: block, ...rest } = expandDots(tree)
  const model = typeof rest['model'] === 'string' ? { model: { path: rest['model'] } } : {}
  const own: Record<string, unknown> = {}
  const fields: Record<string, unknown> = {}
  for (const [key, value] of Object.entries({ ...rest, ...model })) (ownKeys.includes(key) ? own : fields)[key] = value
  if (isTree(block)) for (const [key, value] of Object.entries(block)) setAt(own, [key], structuredClone(value))
  return { own, fields }
}

/** Longest prompt in tokens; `null` where the model's context is not known. */
export function promptTokens(settings: SwiftSettings, fields: SwiftConfig['fields'], context: number | null): number | null {
  if (settings.maxPromptTokens !== null) return settings.maxPromptTokens
  return context === null ? null : context - completionTokens(fields, context)
}

/** Longest response of a row: swift's argument, else half of the context. */
export function completionTokens(fields: SwiftConfig['fields'], context: number | null): number {
  const set = fields['max_completion_length']
  return typeof set === 'number' ? set : context === null ? 256 : Math.floor(context / 2)
}
