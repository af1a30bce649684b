import { dirname, resolve } from 'node:path'
import { joint, readCommands, spanAt } from './shell-words.ts'

export interface ShellState {
  readonly variables: Map<string, string>
  readonly lists: Map<string, readonly string[]>
  /** Variables whose value is only known when the script runs, and why. */
  readonly unknown: Map<string, string>
  /** `"$@"`. */
  readonly arguments: readonly string[]
  /** `$0` and `${BASH_SOURCE[0]}`. */
  readonly file: string
}

/** Where a script does something that only running it can tell. */
export class NotReadable extends Error {}

interface Piece {
  readonly text: string
  /** Text of a quote is never cut at blanks. */
  readonly quoted: boolean
}

/** The words that bash makes of one word as written. */
export function expandWord(raw: string, state: ShellState): string[] {
  const words: string[] = []
  let current = ''
  let begun = false
  const add = ({ text, quoted }: Piece) => {
    if (quoted) {
      current += text
      begun = true
      return
    }
    for (const part of text.split(/([ \t\n]+)/)) {
      if (part === '') continue
      if (/^[ \t\n]/.test(part)) {
        if (begun) words.push(current)
        current = ''
        begun = false
      } else {
        current += part
        begun = true
      }
    }
  }
  for (let at = 0; at < raw.length; ) {
    const span = spanAt(raw, at)!
    const part = raw.slice(at, at + span)
    at += span
    if (part.startsWith("'")) add({ text: part.slice(1, -1), quoted: true })
    else if (part.startsWith('"')) {
      const list = listOf(part.slice(1, -1), state)
      if (list) {
        const [first, ...rest] = list
        if (first !== undefined) add({ text: first, quoted: true })
        for (const next of rest) {
          words.push(current)
          current = next
        }
      } else add({ text: expandQuoted(part.slice(1, -1), state), quoted: true })
    } else if (part.startsWith('\\')) add({ text: part.slice(1), quoted: true })
    else if (part.startsWith('$') || part === '`') {
      const { text, length } = expandDollar(raw, at - span, state)
      const list = listOf(raw.slice(at - span, at - span + length), state)
      for (const [index, piece] of (list ?? [text]).entries()) add({ text: index > 0 ? ` ${piece}` : piece, quoted: false })
      at += length - span
    } else if (part === '~' && at === 1) add({ text: state.variables.get('HOME') ?? '~', quoted: true })
    else add({ text: part, quoted: true })
  }
  if (begun) words.push(current)
  return words
}

/** The single text of a word, as in an assignment. */
export function expandText(raw: string, state: ShellState): string {
  let text = ''
  for (let at = 0; at < raw.length; ) {
    const span = spanAt(raw, at)!
    const part = raw.slice(at, at + span)
    if (part.startsWith("'")) text += part.slice(1, -1)
    else if (part.startsWith('"')) text += expandQuoted(part.slice(1, -1), state)
    else if (part.startsWith('\\')) text += part.slice(1)
    else if (part.startsWith('$') || part === '`') {
      const dollar = expandDollar(raw, at, state)
      text += dollar.text
      at += dollar.length
      continue
    } else if (part === '~' && at === 0) text += state.variables.get('HOME') ?? '~'
    else if (part !== joint) text += part
    at += span
  }
  return text
}

function expandQuoted(inner: string, state: ShellState): string {
  let text = ''
  for (let at = 0; at < inner.length; ) {
    const character = inner[at]!
    if (inner.startsWith('\\\n', at)) at += 2
    else if (character === '\\' && /["$`\\]/.test(inner[at + 1] ?? '')) {
      text += inner[at + 1]
      at += 2
    } else if (character === '$' || character === '`') {
      const dollar = expandDollar(inner, at, state)
      text += dollar.text
      at += dollar.length
    } else {
      text += character
      at++
    }
  }
  return text
}

/** `$@` and `${name[@]}`, which become several words. */
function listOf(text: string, state: ShellState): readonly string[] | null {
  if (/^\$(@|\*|\{[@*]\})$/.test(text)) return state.arguments
  const name = /^\$\{(\w+)\[[@*]\]\}$/.exec(text)?.[1]
  return name === undefined ? null : (state.lists.get(name) ?? [])
}

function expandDollar(raw: string, at: number, state: ShellState): { text: string; length: number } {
  const rest = raw.slice(at)
  if (rest.startsWith('`')) throw new NotReadable('a command in back-quotes is only known when it runs')
  if (rest.startsWith('$((')) {
    const length = spanAt(raw, at)!
    return { text: String(evaluate(rest.slice(3, length - 2), state)), length }
  }
  if (rest.startsWith('$(')) {
    const length = spanAt(raw, at)!
    return { text: substitute(rest.slice(2, length - 1), state), length }
  }
  if (rest.startsWith('${')) {
    const length = spanAt(raw, at)!
    return { text: parameter(rest.slice(2, length - 1), state), length }
  }
  const name = /^\$(\w+|[@*#?$!0-9-])/.exec(rest)
  if (!name) return { text: '$', length: 1 }
  if (/^[@*]$/.test(name[1]!)) return { text: state.arguments.join(' '), length: 2 }
  if (name[1] === '0') return { text: state.file, length: 2 }
  if (name[1] === '#') return { text: String(state.arguments.length), length: 2 }
  if (/^[1-9]$/.test(name[1]!)) return { text: state.arguments[Number(name[1]) - 1] ?? '', length: 2 }
  return { text: variableOf(name[1]!, state) ?? '', length: name[0].length }
}

function variableOf(name: string, { variables, unknown }: ShellState): string | undefined {
  if (unknown.has(name)) throw new NotReadable(`$${name}: ${unknown.get(name)}`)
  return variables.get(name)
}

/** Inside of `${…}`. */
function parameter(inner: string, state: ShellState): string {
  if (/^BASH_SOURCE(\[0\])?$/.test(inner) || inner === '0') return state.file
  const match = /^(\w+)(?:(:?[-=?+]|%%?|##?)([\s\S]*))?$/.exec(inner)
  if (!match) throw new NotReadable(`\${${inner}} is a form that only bash knows`)
  const [, name, operator, word = ''] = match
  const value = variableOf(name!, state)
  const absent = value === undefined || (operator?.startsWith(':') === true && value === '')
  switch (operator?.replace(':', '')) {
    case undefined:
      return value ?? ''
    case '-':
      return absent ? expandText(word, state) : value!
    case '=':
      if (absent) state.variables.set(name!, expandText(word, state))
      return state.variables.get(name!)!
    case '?':
      if (absent) throw new NotReadable(`${name} is not set: ${expandText(word, state) || 'the script needs it'}`)
      return value!
    case '+':
      return absent ? '' : expandText(word, state)
    default:
      throw new NotReadable(`\${${inner}} is a form that only bash knows`)
  }
}

/** `$(dirname …)`, `$(pwd)`, `$(cd … && pwd)` and `$(realpath …)`; other commands are only known when they run. */
function substitute(inner: string, state: ShellState): string {
  const commands = readCommands(inner)
  let directory = state.variables.get('PWD') ?? '.'
  let output: string | null = null
  for (const { words } of typeof commands === 'string' ? [] : commands) {
    const [command, ...rest] = words.flatMap((word) => expandWord(word, state)).filter((word) => word !== '--' && !/^\d?>/.test(word))
    if (command === 'cd' && rest[0] !== undefined) directory = resolve(directory, rest[0])
    else if (command === 'pwd') output = directory
    else if (command === 'dirname' && rest[0] !== undefined) output = dirname(rest[0])
    else if ((command === 'realpath' || command === 'readlink') && rest.length > 0) output = resolve(directory, rest.at(-1)!)
    else throw new NotReadable(`$(${inner.trim()}) is only known when it runs`)
  }
  if (output === null) throw new NotReadable(`$(${inner.trim()}) is only known when it runs`)
  return output
}

/** Integer arithmetic of `$((…))`: + - * / % and brackets. */
function evaluate(expression: string, state: ShellState): number {
  const text = expression.replace(
    /\$\{?(\w+)\}?|([A-Za-z_]\w*)/g,
    (_, first?: string, second?: string) => `(${state.variables.get((first ?? second)!) || '0'})`,
  )
  const tokens = text.match(/\d+|[-+*/%()]|\S/g) ?? []
  let at = 0
  const unreadable = () => new NotReadable(`$((${expression})) is no arithmetic of + - * / % and brackets`)
  const atom = (): number => {
    const token = tokens[at++]
    if (token === '-') return -atom()
    if (token === '+') return atom()
    if (token === '(') {
      const value = sum()
      if (tokens[at++] !== ')') throw unreadable()
      return value
    }
    if (token === undefined || !/^\d+$/.test(token)) throw unreadable()
    return Number(token)
  }
  const product = (): number => {
    let value = atom()
    while (/^[*/%]$/.test(tokens[at] ?? '')) {
      const operator = tokens[at++]
      const next = atom()
      if (operator !== '*' && next === 0) throw new NotReadable(`$((${expression})) divides by zero`)
      value = operator === '*' ? value * next : operator === '/' ? Math.trunc(value / next) : value % next
    }
    return value
  }
  const sum = (): number => {
    let value = product()
    while (/^[-+]$/.test(tokens[at] ?? '')) value = tokens[at++] === '+' ? value + product() : value - product()
    return value
  }
  const value = sum()
  if (at < tokens.length) throw unreadable()
  return value
}
