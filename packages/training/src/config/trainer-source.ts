import { dirname, relative, resolve } from 'node:path'
import { TrainError } from '@aworld-train/protocol'
import { CallSettings } from './call-settings.ts'
import { copyOf, expandDots, isTree, type KeyTree, setAt } from './key-tree.ts'
import { keysOfTheBox, ownBlock } from './own-config.ts'
import { readConfigFile } from './read-config-file.ts'

export interface TrainerSections {
  /** The trainer that reads. Its section wins over the rest. */
  readonly name: string
  /** Keys at the top of a configuration that belong to one trainer each. */
  readonly sections?: readonly string[] | undefined
}

export interface TakenSection {
  readonly tree: KeyTree
  readonly notes: readonly string[]
  readonly problems: readonly string[]
}

/**
 * A configuration as one trainer reads it, so that one file serves several. The section of its own name wins over the rest. Sections of
 * other trainers and settings of the engine in the box are left out, with a note.
 */
export function takeSection(configuration: KeyTree, { name, sections = [] }: TrainerSections): TakenSection {
  const tree = expandDots(configuration)
  const merged: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(tree)) if (!sections.includes(key)) setAt(merged, [key], copyOf(value))
  const section = sections.includes(name) ? (tree[name] ?? {}) : {}
  if (isTree(section)) for (const [key, value] of Object.entries(section)) setAt(merged, [key], copyOf(value))
  const block = tree[ownBlock]
  const left = [
    ...Object.entries(tree).flatMap(([key, value]) => (sections.includes(key) ? (key === name ? [] : [key]) : unreadKeys(key, value))),
    ...(isTree(block) ? Object.entries(block).flatMap(([key, value]) => unreadKeys(key, value).map((left) => `${ownBlock}.${left}`)) : []),
  ]
  return {
    tree: merged,
    notes: left.length === 0 ? [] : [`${name} leaves aside what is for other trainers: ${left.join(', ')}.`],
    problems: isTree(section) ? [] : [`"${name}" is no mapping of keys to values; write one.`],
  }
}

/** Keys of one of our sections that only the box reads. In `gateway`, every trainer reads the treatment of agents' calls. */
function unreadKeys(key: string, value: unknown): readonly string[] {
  if (!keysOfTheBox.includes(key)) return []
  if (key !== 'gateway' || !isTree(value)) return [key]
  return Object.keys(value).flatMap((member) => (Object.hasOwn(CallSettings.shape, member) ? [] : [`${key}.${member}`]))
}

export interface TrainerSourceOptions extends TrainerSections {
  /** Names that are ours at the top: `ownKeysOf` the settings. */
  readonly ownKeys: readonly string[]
  /** Base folder for relative paths of a configuration that is not a file. */
  readonly baseDirectory: string
}

/** A configuration, split into our keys and the framework's. */
export interface TrainerSource {
  readonly own: Record<string, unknown>
  readonly fields: Record<string, unknown>
  readonly directory: string
  /** The file that problems are placed in; `null` if there is none or if they name it themselves. */
  readonly where: string | null
  readonly notes: readonly string[]
  readonly problems: readonly string[]
  /** Sections of ours that could not be read: either all or none. */
  readonly failed: readonly string[]
}

/**
 * Reads a configuration in a framework's keys, in ours, or both, from a YAML or JSON file or an object. A key in our block wins over the
 * same key outside of it.
 */
export function readTrainerSource(source: unknown, { name, sections, ownKeys, baseDirectory }: TrainerSourceOptions): TrainerSource {
  const { problems, ...found } = findSource(source, resolve(baseDirectory))
  const taken = takeSection(found.tree, { name, sections })
  const { [ownBlock]: block, ...rest } = taken.tree
  const own: Record<string, unknown> = {}
  const fields: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(rest)) (ownKeys.includes(key) ? own : fields)[key] = value
  if (isTree(block)) for (const [key, value] of Object.entries(block)) setAt(own, [key], value)
  const { directory, where } = found
  const failed = problems.length > 0 ? ownKeys : []
  return { own, fields, directory, where, notes: taken.notes, problems: [...problems, ...taken.problems], failed }
}

function findSource(source: unknown, base: string) {
  const empty = { tree: {} as KeyTree, directory: base, where: null, problems: [] as readonly string[] }
  if (source === undefined) return empty
  if (typeof source !== 'string') {
    if (isTree(source)) return { ...empty, tree: source }
    return { ...empty, problems: ['The configuration is neither a path nor an object of keys and values; pass one of these.'] }
  }
  const file = resolve(base, source)
  const where = relative(base, file).startsWith('..') ? file : relative(base, file)
  try {
    return { ...empty, tree: readConfigFile(file) as KeyTree, directory: dirname(file), where }
  } catch (error) {
    if (!(error instanceof TrainError)) throw error
    return { ...empty, directory: dirname(file), problems: [error.message] }
  }
}
