import type { ReadConfigOptions } from '@aworld-train/core'
import { numberAt, ownKeysOf, readOwnConfig, readTrainerSource, setAt, valueAt } from '@aworld-train/training'
import { createConfigurationReader } from '../../shared/process/configuration-reader.ts'
import { toModuleConfig } from '../../shared/training/module-config.ts'
import type { ArealConfig } from './areal-config.ts'
import { ArealSettings } from './areal-settings.ts'
import { renderGeneralTerms } from './general-terms.ts'

const ownKeys = ownKeysOf(ArealSettings)

/** Reads a configuration in AReaL's keys, in ours, or both. AReaL's keys win over ours. */
export async function readArealConfig(source: unknown, options: ReadConfigOptions): Promise<ArealConfig> {
  const { baseDirectory, sections, overrides = {}, findPython, signal } = options
  const read = readTrainerSource(source, { name: 'areal', title: 'AReaL', sections, ownKeys, baseDirectory })
  const { own: terms } = read
  const fields = structuredClone(read.fields)
  if (overrides.seed !== undefined) terms['seed'] = overrides.seed
  if (overrides.model !== undefined) setAt(terms, ['model', 'path'], overrides.model)
  const own = readOwnConfig(ArealSettings, terms)
  const rendered = renderGeneralTerms(own.written)
  for (const [path, value] of Object.entries(rendered.fields))
    if (valueAt(fields, path) === undefined) setAt(fields, path.split('.'), value)
  if (overrides.steps !== undefined) {
    fields['total_train_steps'] = overrides.steps
    delete fields['total_train_epochs']
  }
  const python = (await findPython?.(own.settings.python)) ?? null
  const reader = python === null ? null : createConfigurationReader({ python, name: 'areal', title: 'AReaL' })
  const passes = own.training?.passes ?? 1
  const config = toModuleConfig({
    title: 'AReaL',
    source: read,
    own,
    fields,
    responseLength: 'gconfig.max_new_tokens',
    reader,
    answer: reader && (await reader.read({ configuration: fields }, signal)),
    identity: [passes],
    notes: rendered.notes,
    problems: rendered.problems,
  })
  return { ...config, warmupSteps: numberAt(terms, 'training.warmupSteps', null), passes }
}
