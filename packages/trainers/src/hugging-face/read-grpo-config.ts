import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ReadConfigOptions } from '@aworld-train/core'
import { isTree, type KeyTree, ownKeysOf, readOwnConfig, readTrainerSource, setAt } from '@aworld-train/training'
import { createConfigurationReader } from '../shared/process/configuration-reader.ts'
import { type ModuleConfig, ModuleSettings, toModuleConfig } from '../shared/training/module-config.ts'
import { type GrpoFramework, generationOf, toQuestion } from './grpo-framework.ts'
import { renderGrpoTerms } from './grpo-terms.ts'

const ownKeys = ownKeysOf(ModuleSettings)

/** A configuration in the framework's fields, in ours, or both. */
export interface GrpoConfig extends ModuleConfig {
  /** The framework's section that is no field of the trainer's configuration; `null` if it is not written. */
  readonly section: KeyTree | null
}

/**
 * Reads a configuration in the framework's fields, in our keys, or both. The framework's fields win over ours. A `model` that is a name is
 * ours.
 */
export async function readGrpoConfig(source: unknown, options: ReadConfigOptions, framework: GrpoFramework): Promise<GrpoConfig> {
  const { baseDirectory, sections = [], overrides = {}, findPython, signal } = options
  const { name, title, complete = (fields) => fields } = framework
  const read = readTrainerSource(source, { name, title, sections, ownKeys, baseDirectory })
  const { own: terms, directory } = read
  const written = { ...read.fields }
  const section = framework.section === null ? null : written[framework.section]
  if (framework.section !== null) delete written[framework.section]
  if (typeof terms['model'] === 'string') terms['model'] = { path: terms['model'] }
  if (overrides.seed !== undefined) terms['seed'] = overrides.seed
  if (overrides.model !== undefined) setAt(terms, ['model', 'path'], overrides.model)
  // The caller's steps count the same unit as those of the configuration, whichever keys it uses.
  if (overrides.steps !== undefined) {
    setAt(terms, ['training', 'steps'], overrides.steps)
    delete written['max_steps']
  }
  const own = readOwnConfig(ModuleSettings, terms)
  const rendered = renderGrpoTerms(own.written, framework)
  const batched = complete({ ...rendered.fields, ...written })
  const { updates } = generationOf(batched, framework)
  const steps = isTree(terms['training']) ? terms['training']['steps'] : null
  const fields = { ...batched, ...(typeof steps === 'number' && { max_steps: Math.round(steps * updates) }), ...written }
  const counted =
    typeof steps === 'number' && updates > 1 && written['max_steps'] === undefined
      ? [
          `${title} counts updates: ${steps} steps, each a batch of rollouts trained in ${updates} updates, are ${fields['max_steps']} steps in its report.`,
        ]
      : []
  const python = (await findPython?.(own.settings.python)) ?? null
  const reader = python === null ? null : createConfigurationReader({ python, name, title, variables: framework.variables?.() })
  const question = {
    configuration: fields,
    section: isTree(section) ? section : null,
    model: modelOf(directory, own.settings.model.path),
    names: [...ownKeys, ...sections],
  }
  const config = toModuleConfig({
    title,
    source: read,
    own,
    fields,
    responseLength: 'max_completion_length',
    reader,
    answer: reader && (await reader.read(toQuestion(framework, question), signal)),
    identity: framework.section === null ? [] : [question.section],
    notes: [...counted, ...rendered.notes],
    problems: rendered.problems,
  })
  return { ...config, section: question.section }
}

/** The path of a model's folder, or a name on a hub as it is. */
export function modelOf(directory: string, model: string | null): string | null {
  const folder = model && resolve(directory, model)
  return folder && existsSync(folder) ? folder : model
}
