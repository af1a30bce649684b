import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ReadConfigOptions } from '@aworld-train/core'
import { contextLengthOf } from '@aworld-train/run'
import { isTree, ownKeysOf, readDrivenSource, readOwnConfig, setAt } from '@aworld-train/training'
import { askSwift } from './ask-swift.ts'
import { renderGeneralTerms } from './general-terms.ts'
import { generationOf } from './generation-of.ts'
import type { SwiftConfig, SwiftFields } from './swift-config.ts'
import { SwiftSettings } from './swift-settings.ts'

const ownKeys = ownKeysOf(SwiftSettings)

/** Reads a configuration in arguments of `swift rlhf`, in our keys, or both. Swift's own win over ours; its `model` is ours. */
export async function readSwiftConfig(source: unknown, options: ReadConfigOptions): Promise<SwiftConfig> {
  const { baseDirectory, sections, overrides = {}, findPython, signal } = options
  const read = readDrivenSource(source, { name: 'swift', sections, ownKeys, baseDirectory })
  const { own, directory, where } = read
  const written = { ...read.fields }
  if (typeof own['model'] === 'string') own['model'] = { path: own['model'] }
  if (overrides.seed !== undefined) own['seed'] = overrides.seed
  if (overrides.model !== undefined) setAt(own, ['model', 'path'], overrides.model)
  // Steps of the caller count what those of the configuration do, whatever spells its fields.
  if (overrides.steps !== undefined) {
    setAt(own, ['training', 'steps'], overrides.steps)
    delete written['max_steps']
  }
  const terms = renderGeneralTerms(own)
  const batched = withBatch({ ...terms.fields, ...written })
  const { updates } = generationOf(batched)
  const steps = isTree(own['training']) ? own['training']['steps'] : null
  const fields: SwiftFields = { ...batched, ...(typeof steps === 'number' && { max_steps: Math.round(steps * updates) }), ...written }
  const counted =
    typeof steps === 'number' && updates > 1 && written['max_steps'] === undefined
      ? [
          `ms-swift counts updates: ${steps} steps, each a batch of rollouts trained in ${updates} updates, are ${fields['max_steps']} steps in its report.`,
        ]
      : []
  const { settings, training, problems: ownProblems } = readOwnConfig(SwiftSettings, own)
  const stratify = training?.stratify ?? null
  const python = (await findPython?.(settings.python)) ?? null
  const model = settings.model.path
  const question = { configuration: fields, model: model && folderOf(directory, model), names: [...ownKeys, ...(sections ?? [])] }
  const answer = python === null ? null : await askSwift(question, { python, signal })
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
    notes: [...read.notes, ...counted, ...terms.notes, ...(answer?.notes ?? [])],
    problems: [...read.problems, ...ownProblems, ...terms.problems, ...native, ...(answer?.problems ?? [])].map((problem) =>
      where === null ? problem : `${where}: ${problem}`,
    ),
  }
}

const batchKeys = ['per_device_train_batch_size', 'generation_batch_size', 'steps_per_generation', 'gradient_accumulation_steps']

/** Swift's own batch is one row, which no group fits; a batch of one group where the user says nothing of it. */
function withBatch(fields: SwiftFields): SwiftFields {
  if (batchKeys.some((key) => fields[key] !== undefined)) return fields
  return { ...fields, per_device_train_batch_size: fields['num_generations'] ?? 8 }
}

/** A model's folder as swift is asked of it; a name of a hub stays. */
function folderOf(directory: string, model: string): string {
  const folder = resolve(directory, model)
  return existsSync(folder) ? folder : model
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
