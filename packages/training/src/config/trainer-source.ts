import { dirname, relative, resolve } from 'node:path'
import { didYouMean, suggest, TrainError } from '@aworld-train/core'
import { copyOf, expandDots, isTree, type KeyTree, setAt } from './key-tree.ts'
import { keysOfTheBox } from './own-config.ts'
import { readConfigFile } from './read-config-file.ts'

/** A block that configurations do not have. A key that somebody writes there is a problem that says where it stands. */
export const formerBlock = 'aworldTrain'

/** The problem of a former block in a configuration; none without one. */
export const blockProblems = ({ [formerBlock]: block }: KeyTree): string[] =>
  block === undefined
    ? []
    : [
        `"${formerBlock}" is no section of a configuration: its keys stand at the top.${isTree(block) && Object.keys(block).length > 0 ? ` Write ${Object.keys(block).join(', ')} there.` : ' Leave it out.'}`,
      ]

export interface SourceKeys {
  /** The trainer that reads: its name, which is that of its section, and its title for people. */
  readonly name: string
  readonly title: string
  /** Keys at the top of a configuration that belong to one trainer each, by its name. */
  readonly sections?: readonly string[] | undefined
  /** Names that are ours: `ownKeysOf` the settings. */
  readonly ownKeys: readonly string[]
  /** Our members of sections that the framework has too. */
  readonly shared?: Readonly<Record<string, readonly string[]>>
  /** Whether the framework's keys may stand at the top as well, since its users have files of them. */
  readonly atTop?: boolean
}

/** A configuration, split into our keys and the framework's. */
export interface SplitConfig {
  readonly own: Record<string, unknown>
  readonly fields: Record<string, unknown>
  readonly notes: readonly string[]
  readonly problems: readonly string[]
}

/**
 * Splits a configuration that may serve several trainers. Ours stand at the top, a framework's in the section of its name. A key of ours in
 * that section wins over the top, for this trainer alone. What is for other trainers is left out, with a note.
 */
export function splitConfig(configuration: KeyTree, keys: SourceKeys): SplitConfig {
  const { name, title, sections = [], ownKeys, atTop = false } = keys
  const { [name]: written, ...rest } = expandDots(configuration)
  // YAML has null for a section with nothing below it.
  const section = written ?? {}
  const [others, top] = [
    Object.keys(rest).filter((key) => sections.includes(key)),
    Object.entries(rest).filter(([key]) => !sections.includes(key)),
  ]
  const own: Record<string, unknown> = {}
  const fields: Record<string, unknown> = {}
  const problems = [
    ...blockProblems(rest),
    ...(isTree(section) ? blockProblems(section) : [`"${name}" is no mapping of keys to values; write one.`]),
  ]
  for (const [key, value] of top) {
    if (key === formerBlock) continue
    const isOurs = ownKeys.includes(key) || (atTop && suggest(key, ownKeys) !== null)
    if (!isOurs && !atTop)
      problems.push(
        `"${key}" is no key of the configuration.${didYouMean(key, ownKeys)} A key of ${title} stands in the section "${name}": ${name}.${key}.`,
      )
    else place({ own, fields }, [key, value], isOurs, keys)
  }
  for (const [key, value] of isTree(section) ? Object.entries(section) : [])
    if (key !== formerBlock) place({ own, fields }, [key, value], ownKeys.includes(key), keys)
  const left = [...others, ...Object.keys(own).filter((key) => keysOfTheBox.includes(key))]
  return { own, fields, problems, notes: left.length === 0 ? [] : [`${name} leaves aside what is for other trainers: ${left.join(', ')}.`] }
}

/** Whether a member of a section that a framework has too is ours. Frameworks write no capitals, so a misspelt one of ours is as well. */
export const isOurMember = (member: string, ours: readonly string[]): boolean => ours.includes(member) || /[A-Z]/.test(member)

function place(
  { own, fields }: Pick<SplitConfig, 'own' | 'fields'>,
  [key, value]: readonly [string, unknown],
  isOurs: boolean,
  { shared = {} }: SourceKeys,
): void {
  const ours = shared[key]
  if (!ours || !isTree(value)) setAt(isOurs ? own : fields, [key], copyOf(value))
  else for (const [member, each] of Object.entries(value)) setAt(isOurMember(member, ours) ? own : fields, [key, member], copyOf(each))
}

export interface TrainerSourceOptions extends SourceKeys {
  /** Base folder for relative paths of a configuration that is not a file. */
  readonly baseDirectory: string
  /** What is said of a script. */
  readonly script?: (shown: string) => string
}

/** A configuration as it was read and split. */
export interface TrainerSource extends SplitConfig {
  /** The whole, as the user wrote it. */
  readonly tree: KeyTree
  readonly directory: string
  /** The file that problems are placed in; `null` if there is none. */
  readonly where: string | null
  /** Sections of ours that could not be read: either all or none. */
  readonly failed: readonly string[]
}

/** Reads a configuration for a framework from a YAML or JSON file or an object. */
export function readTrainerSource(source: unknown, { baseDirectory, script, ...keys }: TrainerSourceOptions): TrainerSource {
  const { problems, ...found } = findSource(source, resolve(baseDirectory), script)
  const split = splitConfig(found.tree, keys)
  const all = [...problems, ...split.problems]
  return { ...split, ...found, problems: all, failed: all.length > 0 ? keys.ownKeys : [] }
}

function findSource(source: unknown, base: string, script?: (shown: string) => string) {
  const empty = { tree: {} as KeyTree, directory: base, where: null, problems: [] as readonly string[] }
  if (source === undefined) return empty
  if (typeof source !== 'string') {
    if (isTree(source)) return { ...empty, tree: source }
    return { ...empty, problems: ['The configuration is neither a path nor an object of keys and values; pass one of these.'] }
  }
  const file = resolve(base, source)
  const where = relative(base, file).startsWith('..') ? file : relative(base, file)
  try {
    return { ...empty, tree: readConfigFile(file, script?.(where)) as KeyTree, directory: dirname(file), where }
  } catch (error) {
    if (!(error instanceof TrainError)) throw error
    return { ...empty, directory: dirname(file), where, problems: [error.message.replace(`${file}: `, '')] }
  }
}
