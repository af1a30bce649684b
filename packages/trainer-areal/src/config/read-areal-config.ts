import { resolve } from 'node:path'
import type { ReadConfigOptions } from '@aworld-train/core'
import { contextLengthOf } from '@aworld-train/run'
import { type KeyTree, ownKeysOf, readDrivenSource, readOwnConfig, setAt } from '@aworld-train/training'
import { type ArealConfig, numberAt, valueAt } from './areal-config.ts'
import { ArealSettings } from './areal-settings.ts'
import { askAreal } from './ask-areal.ts'
import { renderGeneralTerms } from './general-terms.ts'

const ownKeys = ownKeysOf(ArealSettings)

/** Reads a configuration in AReaL's keys, in ours, or both. AReaL's own win over ours. */
export async function readArealConfig(source: unknown, options: ReadConfigOptions): Promise<ArealConfig> {
  const { baseDirectory, sections, overrides = {}, findPython, signal } = options
  const read = readDrivenSource(source, { name: 'areal', sections, ownKeys, baseDirectory })
  const { own, directory, where } = read
  const fields = structuredClone(read.fields)
  if (overrides.seed !== undefined) own['seed'] = overrides.seed
  if (overrides.model !== undefined) setAt(own, ['model', 'path'], overrides.model)
  const terms = renderGeneralTerms(own)
  for (const [path, value] of Object.entries(terms.fields)) if (valueAt(fields, path) === undefined) setAt(fields, path.split('.'), value)
  if (overrides.steps !== undefined) {
    fields['total_train_steps'] = overrides.steps
    delete fields['total_train_epochs']
  }
  const { settings, training, problems: ownProblems } = readOwnConfig(ArealSettings, own)
  const python = (await findPython?.(settings.python)) ?? null
  const answer = python === null ? null : await askAreal({ configuration: fields }, { python, signal })
  const model = settings.model.path
  const native = settings.reward.native ? ['reward.native leaves scoring to AReaL, which has no reward here; pass rewardFunc.'] : []
  const tokens = promptTokens(settings, fields, model === null ? null : contextLengthOf(resolve(directory, model)))
  return {
    directory,
    settings,
    fields,
    stratify: training?.stratify ?? null,
    warmupSteps: numberAt(own, 'training.warmupSteps', null),
    passes: training?.passes ?? 1,
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
    identity: [fields, training?.stratify ?? null, training?.passes ?? 1],
    notes: [...read.notes, ...terms.notes, ...(answer?.notes ?? [])],
    problems: [...read.problems, ...ownProblems, ...terms.problems, ...native, ...(answer?.problems ?? [])].map((problem) =>
      where === null ? problem : `${where}: ${problem}`,
    ),
  }
}

/** Longest prompt in tokens; `null` where the model's context is not known. */
export function promptTokens(settings: ArealSettings, fields: KeyTree, context: number | null): number | null {
  if (settings.maxPromptTokens !== null) return settings.maxPromptTokens
  return context === null ? null : context - responseTokens(fields, context)
}

/** Longest response of a row: AReaL's key, else half of the context. */
export const responseTokens = (fields: KeyTree, context: number | null): number =>
  numberAt(fields, 'gconfig.max_new_tokens', context === null ? 256 : Math.floor(context / 2))
