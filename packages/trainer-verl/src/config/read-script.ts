import { resolve } from 'node:path'
import { expandText, expandWord, NotReadable, type ShellState } from './shell-expand.ts'
import { holds } from './shell-test.ts'
import { joint, type RawCommand, readCommands } from './shell-words.ts'

export interface ReadScriptOptions {
  readonly file: string
  /** Its own arguments: `"$@"`. */
  readonly arguments: readonly string[]
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Folder that it is run from. */
  readonly directory: string
}

/** What a launch script starts verl with. */
export interface ReadScript {
  readonly arguments: readonly { readonly text: string; readonly line: number }[]
  /** Module after `python -m`; `null` where the script starts no trainer. */
  readonly module: string | null
  /** What it exports or sets before the command. */
  readonly exports: Readonly<Record<string, string>>
  readonly notes: readonly string[]
  readonly problems: readonly string[]
}

const harmless = new Set([
  'set',
  'command',
  'timeout',
  'echo',
  'printf',
  'true',
  ':',
  'ulimit',
  'mkdir',
  'sleep',
  'date',
  'unset',
  'shopt',
  'trap',
  'wait',
  'exit',
  'test',
  '[',
])
const trainer = /^verl\.[\w.]*main\w*$|(^|\/)main_ppo\w*(\.py)?$/

/**
 * Reads a bash script that ends in `python -m verl.trainer.main_ppo key=value …` without running it: variables with
 * defaults, exports, arithmetic, lists, `if [ … ]`, and `"$@"`. What only running it could tell is a problem with its line.
 */
export function readScript(text: string, options: ReadScriptOptions): ReadScript {
  const inherited = Object.entries(options.environment).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const state: ShellState = {
    variables: new Map([...inherited, ['PWD', options.directory]]),
    lists: new Map(),
    unknown: new Map(),
    arguments: options.arguments,
    file: options.file,
  }
  const found: { text: string; line: number }[] = []
  const exports: Record<string, string> = {}
  const notes: string[] = []
  const problems: string[] = []
  let module: string | null = null
  const commands = readCommands(text)
  if (typeof commands === 'string') return { arguments: [], module, exports, notes, problems: [commands] }

  /** Whether each enclosing `if` has its branch running, and has had one. */
  const branches: { running: boolean; done: boolean; unknown?: string }[] = []
  const running = () => branches.every((branch) => branch.running)
  const fail = (line: number, why: string) =>
    problems.push(`line ${line}: ${why}; put the keys into a YAML file, or give them as overrides.`)

  const condition = (words: readonly string[]): boolean =>
    holds(
      words.flatMap((word) => expandWord(word, state)),
      state,
    )

  /** Open braces of a function that is being defined; its commands are not run. */
  let defining = 0
  const defined = new Set<string>()

  const run = ({ words, line }: RawCommand): void => {
    const [first, ...rest] = words as [string, ...string[]]
    if (defining > 0) {
      defining += words.filter((word) => word === '{').length - words.filter((word) => word === '}').length
      return
    }
    const name = /^(\w+)\(\)$/.exec(first)?.[1]
    if (name && rest[0] === '{') {
      defined.add(name)
      defining = 1 - (rest.includes('}') ? 1 : 0)
      return
    }
    if (first === 'if' || first === 'elif') {
      if (first === 'if') branches.push({ running: false, done: !running() })
      const branch = branches.at(-1)!
      if (branch.unknown !== undefined) return
      try {
        const taken: boolean = !branch.done && condition(rest)
        branches[branches.length - 1] = { running: taken, done: branch.done || taken }
      } catch (error) {
        if (!(error instanceof NotReadable)) throw error
        branches[branches.length - 1] = { running: false, done: true, unknown: error.message }
      }
      return
    }
    if (first === 'then') {
      if (rest.length > 0) run({ words: rest, line, end: '' })
      return
    }
    if (first === 'else') {
      const branch = branches.at(-1)
      if (branch) branches[branches.length - 1] = { running: !branch.done, done: true }
      if (rest.length > 0) run({ words: rest, line, end: '' })
      return
    }
    if (first === 'fi') {
      branches.pop()
      return
    }
    if (!running()) {
      const why = branches.find((branch) => branch.unknown !== undefined)?.unknown
      if (why !== undefined) perhaps(words, why, line)
      return
    }
    if (/^(for|while|until|case|function|select)$/.test(first) || /\(\)$/.test(first)) {
      return void fail(line, `"${first}" is a form that only running the script can tell`)
    }
    simple(words, line)
  }

  /** Commands behind a condition that only running the script can tell. */
  const perhaps = (words: readonly string[], why: string, line: number): void => {
    if (words.some((word) => trainer.test(word))) fail(line, why)
    for (const word of words) {
      const name = /^(\w+)\+?=/.exec(word)?.[1]
      if (name) state.unknown.set(name, why)
    }
  }

  const assign = (word: string, exported: boolean): boolean => {
    const match = /^(\w+)(\+)?=([\s\S]*)$/.exec(word)
    if (!match || /^\d/.test(match[1]!)) return false
    const [, name, more, raw] = match as unknown as [string, string, string | undefined, string]
    if (raw.startsWith('(')) {
      const inner = readCommands(raw.slice(1, -1))
      const items = typeof inner === 'string' ? [] : inner.flatMap(({ words }) => words.flatMap((each) => expandWord(each, state)))
      state.lists.set(name, [...(more ? (state.lists.get(name) ?? []) : []), ...items])
      return true
    }
    let value: string
    try {
      value = expandText(raw, state)
    } catch (error) {
      if (!(error instanceof NotReadable)) throw error
      state.unknown.set(name, error.message)
      return true
    }
    state.unknown.delete(name)
    state.variables.set(name, more ? `${state.variables.get(name) ?? ''}${value}` : value)
    if (exported || name in exports) exports[name] = state.variables.get(name)!
    return true
  }

  const simple = (words: readonly string[], line: number): void => {
    const command = words.findIndex((word) => !/^\w+\+?=/.test(word))
    if (command < 0) {
      for (const word of words) assign(word, false)
      return
    }
    const [first, ...rest] = words.slice(command) as [string, ...string[]]
    if (first === 'export' || first === 'declare' || first === 'readonly' || first === 'local' || first === 'typeset') {
      const exported = first === 'export' || rest.includes('-x')
      for (const word of rest) {
        if (word.startsWith('-') || assign(word, exported)) continue
        if (exported && !state.unknown.has(word)) exports[word] = state.variables.get(word) ?? ''
      }
      return
    }
    if (first === 'cd') {
      const target = rest.flatMap((word) => expandWord(word, state))[0]
      if (target) state.variables.set('PWD', resolve(state.variables.get('PWD')!, target))
      return
    }
    const passed = harmless.has(first) || defined.has(first) || first.startsWith('(')
    if (passed && !words.some((word) => trainer.test(word))) return
    const expanded = words.slice(command).flatMap((word) => {
      try {
        return expandWord(word, state)
      } catch (error) {
        // What Ray's workers are given belongs to each launch.
        if (error instanceof NotReadable && /^['"]?\+*(ray_kwargs\.ray_init\.runtime_env|hydra)\./.test(word)) return []
        throw error
      }
    })
    const at = expanded.findIndex((word) => trainer.test(word.replaceAll(joint, '')))
    if (at >= 0) {
      if (module !== null) return void fail(line, 'a second training command stands here')
      for (const word of words.slice(0, command)) assign(word, true)
      module = expanded[at]!
      found.push(...expanded.slice(at + 1).flatMap((word) => unjoin(word, line)))
      return
    }
    notes.push(`line ${line} of ${options.file}: "${first}" is not part of the configuration and was passed over.`)
  }

  /** Overrides that ran together because a blank is missing before the end of a line. */
  const unjoin = (word: string, line: number): { text: string; line: number }[] => {
    if (/^(\d?>|<)/.test(word)) return []
    const parts = word.split(joint)
    const separate = parts.length > 1 && parts.slice(1).every((part) => /^\+{0,2}[\w@/]+(\.[\w@/]+)+=/.test(part))
    if (!separate) return [{ text: parts.join(''), line }]
    notes.push(
      `${options.file}: a blank is missing before the \\ at the end of ${parts.length === 2 ? 'a line' : `${parts.length - 1} lines`}, which makes one word of ${parts.map((part) => part.split('=')[0]).join(', ')}; they were read as ${parts.length} keys.`,
    )
    return parts.map((part) => ({ text: part, line }))
  }

  for (const command of commands) {
    try {
      run(command)
    } catch (error) {
      if (!(error instanceof NotReadable)) throw error
      fail(command.line, error.message)
    }
  }
  if (module === null && problems.length === 0) {
    problems.push('it starts no trainer; it should hold "python3 -m verl.trainer.main_ppo key=value …".')
  }
  return { arguments: found, module, exports, notes, problems }
}
