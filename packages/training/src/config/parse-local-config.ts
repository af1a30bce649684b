import { TrainError } from '@aworld-train/core'
import type { z } from 'zod'
import { acceptedPart } from './accepted-part.ts'
import { fieldsOf } from './describe-issues.ts'
import { copyOf, expandDots, isTree, type KeyTree, setAt } from './key-tree.ts'
import { LocalConfig } from './local-config.ts'
import { inertNotes } from './own-config.ts'
import { readConfigFile } from './read-config-file.ts'
import type { InertSettings } from './setting-name.ts'
import { blockProblems, formerBlock } from './trainer-source.ts'

/** A framework's configuration translated to the keys of LocalConfig. */
export interface TranslatedKeys {
  /** In the shape of LocalConfig. */
  readonly config: KeyTree
  readonly ignored: readonly string[]
  readonly warnings: readonly string[]
  readonly problems: readonly string[]
}

/** Reads the keys that users bring from a training framework. */
export interface KeyTranslator {
  /** Top-level keys, any of which marks such a configuration. */
  readonly sections: readonly string[]
  translate(tree: KeyTree): TranslatedKeys
}

/** A section that belongs to a sampler and trainer, and is not part of LocalConfig. */
export interface ConfigExtension {
  readonly section: string
  /** Defaults that replace ours, in the shape of LocalConfig. */
  readonly defaults?: KeyTree | undefined
  /** Keys of the section that replace ours. Its other keys are for its owner. */
  readonly overrides: readonly string[]
  /** Settings that the owner of the section does not read. */
  readonly inert?: InertSettings | undefined
}

export interface LocalConfigOptions {
  /** Reads keys of a framework. */
  readonly translator?: KeyTranslator | undefined
  /** The section of the trainer that runs. Sections of `others` are not read. */
  readonly extension?: ConfigExtension | undefined
  readonly others?: readonly string[] | undefined
}

export interface ParsedLocalConfig {
  readonly config: LocalConfig
  /** The keys of the extension's section that are for its owner. */
  readonly extension: KeyTree
  /** Keys of a framework's configuration that have no effect here. */
  readonly ignored: readonly string[]
  /** Settings that the trainer does not read. */
  readonly notes: readonly string[]
  /** Sentences that are shown to the user once. */
  readonly warnings: readonly string[]
}

/**
 * Reads a configuration from a YAML or JSON path or an object, in our own keys, in those that `translator` reads, or both. Our keys win,
 * and those of the extension's section win over ours. Throws CONFIG_INVALID with every problem; an unknown key of ours is one, with a
 * suggestion.
 */
export function parseLocalConfig(source: string | object | undefined, options: LocalConfigOptions = {}): ParsedLocalConfig {
  const { problems, failed: _, ...parsed } = readLocalConfig(source, options)
  if (problems.length > 0) throw new TrainError('CONFIG_INVALID', problems.join('\n'), { details: { problems } })
  return parsed
}

export interface ReadLocalConfig extends ParsedLocalConfig {
  /** One sentence for each problem, with its file. A part with a problem is not in `config`. */
  readonly problems: readonly string[]
  /** Sections with a problem. */
  readonly failed: readonly string[]
}

const clip = 'a loss of your own has its own clip'
const clipOfTheBox: InertSettings = { 'training.clipLow': clip, 'training.clipHigh': clip }

/** Reads as `parseLocalConfig` does, but throws only if nothing can be read. */
export function readLocalConfig(source: string | object | undefined, options: LocalConfigOptions = {}): ReadLocalConfig {
  const { translator, extension, others = [] } = options
  const where = typeof source === 'string' ? `${source}: ` : ''
  const read = typeof source === 'string' ? readConfigFile(source) : (source ?? {})
  if (!isTree(read))
    throw new TrainError('CONFIG_INVALID', 'The configuration is neither a path nor an object of keys and values; pass one of these.')
  const { tree, owned } = withoutSections(expandDots(read), extension, others)
  const misplaced = blockProblems(expandDots(read))
  const overrides = Object.fromEntries(extension?.overrides.flatMap((key) => (key in owned ? [[key, owned[key]]] : [])) ?? [])
  const foreign = translator?.sections.some((section) => section in tree) ?? false
  const { own, framework } = foreign ? separate(tree) : { own: tree, framework: {} }
  const translated = translator && foreign ? translator.translate(framework) : { config: {}, ignored: [], warnings: [], problems: [] }
  const merged: Record<string, unknown> = {}
  for (const part of [extension?.defaults ?? {}, translated.config, own, overrides])
    for (const [key, value] of Object.entries(part)) setAt(merged, [key], copyOf(value))
  const { data, problems: found, failed } = acceptedPart(LocalConfig, merged)
  const problems = [...misplaced, ...translated.problems, ...found].map((problem) => `${where}${problem}`)
  const inert = extension?.inert ? inertNotes(own, extension.inert, extension.section) : []
  if (data.training.loss !== null) inert.push(...inertNotes(own, clipOfTheBox, 'training.loss'))
  const rest = Object.fromEntries(Object.entries(owned).filter(([key]) => !(key in overrides)))
  return { config: data, extension: rest, ignored: translated.ignored, notes: inert, warnings: translated.warnings, problems, failed }
}

/** Splits the tree into the part without sections of trainers, and the section of the extension. */
function withoutSections(tree: KeyTree, extension: ConfigExtension | undefined, others: readonly string[]) {
  const owned = extension ? (tree[extension.section] ?? {}) : {}
  if (!isTree(owned)) throw new TrainError('CONFIG_INVALID', `"${extension?.section}" is no mapping of keys to values; write one.`)
  const kept = Object.entries(tree).filter(([key]) => key !== extension?.section && !others.includes(key) && key !== formerBlock)
  return { tree: Object.fromEntries(kept), owned }
}

/** Splits our keys from a framework's, which are in sections of their own, or in snake_case in a section that both have. */
function separate(tree: KeyTree): { own: KeyTree; framework: KeyTree } {
  const own: Record<string, unknown> = {}
  const framework: Record<string, unknown> = {}
  const ours = LocalConfig.shape as Record<string, z.ZodType>
  for (const [key, value] of Object.entries(tree)) {
    if (!Object.hasOwn(ours, key)) framework[key] = value
    else if (!isTree(value)) own[key] = value
    else {
      const fieldNames = fieldsOf(ours[key])
      for (const [name, member] of Object.entries(value)) setAt(fieldNames.includes(name) ? own : framework, [key, name], member)
    }
  }
  return { own, framework }
}
