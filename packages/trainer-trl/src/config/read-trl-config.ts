import { resolve } from 'node:path'
import type { ReadConfigOptions } from '@aworld-train/core'
import { contextLengthOf } from '@aworld-train/run'
import { isTree, ownKeysOf, readDrivenSource, readOwnConfig, setAt } from '@aworld-train/training'
import { askTrl } from './ask-trl.ts'
import { renderGeneralTerms } from './general-terms.ts'
import { generationOf } from './generation-of.ts'
import type { TrlConfig } from './trl-config.ts'
import { TrlSettings } from './trl-settings.ts'

const ownKeys = ownKeysOf(TrlSettings)

/** Reads a configuration in fields of GRPOConfig, with those of peft in `lora`, in our keys, or both. TRL's own win over ours. */
export async function readTrlConfig(source: unknown, options: ReadConfigOptions): Promise<TrlConfig> {
  const { baseDirectory, sections, overrides = {}, findPython, signal } = options
  const read = readDrivenSource(source, { name: 'trl', sections, ownKeys, baseDirectory })
  const { own, directory, where } = read
  const { lora: adapter, ...written } = read.fields
  const lora = isTree(adapter) ? adapter : null
  if (overrides.seed !== undefined) own['seed'] = overrides.seed
  if (overrides.model !== undefined) setAt(own, ['model', 'path'], overrides.model)
  // Steps of the caller count what those of the configuration do, whatever spells its fields.
  if (overrides.steps !== undefined) {
    setAt(own, ['training', 'steps'], overrides.steps)
    delete written['max_steps']
  }
  const terms = renderGeneralTerms(own)
  const { updates } = generationOf({ ...terms.fields, ...written })
  const steps = isTree(own['training']) ? own['training']['steps'] : null
  const fields = { ...terms.fields, ...(typeof steps === 'number' && { max_steps: Math.round(steps * updates) }), ...written }
  const counted =
    typeof steps === 'number' && updates > 1 && written['max_steps'] === undefined
      ? [
          `TRL counts updates: ${steps} steps, each a batch of rollouts trained in ${updates} updates, are ${fields['max_steps']} steps in its report.`,
        ]
      : []
  const { settings, training, problems: ownProblems } = readOwnConfig(TrlSettings, own)
  const stratify = training?.stratify ?? null
  const python = (await findPython?.(settings.python)) ?? null
  const answer =
    python === null ? null : await askTrl({ configuration: fields, lora, names: [...ownKeys, ...(sections ?? [])] }, { python, signal })
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
    notes: [...read.notes, ...counted, ...terms.notes, ...(answer?.notes ?? [])],
    problems: [...read.problems, ...ownProblems, ...terms.problems, ...native, ...(answer?.problems ?? [])].map((problem) =>
      where === null ? problem : `${where}: ${problem}`,
    ),
  }
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
