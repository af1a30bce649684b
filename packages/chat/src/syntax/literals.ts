import { objectOf } from './call-object.ts'

/** Thrown by readers of literals if the text is none. */
export class NoLiteral extends Error {}

/** The differences between notations of values. */
export interface Notation {
  /** Words that are values, with their JSON text. */
  readonly words: Readonly<Record<string, string>>
  /** Reads a string that begins at `at`: its value and its end; `null` if none begins there. */
  string(text: string, at: number): { readonly value: string; readonly end: number } | null
  /** Whether keys of objects may stand without quotes. */
  readonly bareKeys: boolean
}

const deepest = 200
const space = /[ \t\r\n]*/y
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const word = /[A-Za-z_][A-Za-z0-9_]*/y
const bareKey = /[^\s:,{}[\]"<>]+/y

/** Reads text and turns values of a notation into JSON text. */
export class LiteralReader {
  readonly #text: string
  readonly #notation: Notation
  #at: number

  constructor(text: string, notation: Notation, at = 0) {
    this.#text = text
    this.#notation = notation
    this.#at = at
  }

  get ended(): boolean {
    this.skip()
    return this.#at >= this.#text.length
  }

  skip(): void {
    this.match(space)
  }

  /** Takes `expected` if it comes next. */
  take(expected: string): boolean {
    this.skip()
    if (!this.#text.startsWith(expected, this.#at)) return false
    this.#at += expected.length
    return true
  }

  need(expected: string): void {
    if (!this.take(expected)) throw new NoLiteral()
  }

  match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.#at += found.length
    return found
  }

  /** Reads the next value as JSON text. */
  value(depth = 0): string {
    this.skip()
    if (depth > deepest) throw new NoLiteral()
    const string = this.#string()
    if (string !== null) return JSON.stringify(string)
    if (this.take('[')) return `[${this.#items(depth)}]`
    if (this.take('{')) return this.members(depth)
    const digits = this.match(number)
    if (digits !== '') return digits
    const named = this.match(word)
    if (!Object.hasOwn(this.#notation.words, named)) throw new NoLiteral()
    return this.#notation.words[named]!
  }

  /** Reads the members up to the closing brace as the JSON text of an object. */
  members(depth = 0): string {
    const members = new Map<string, string>()
    while (!this.take('}')) {
      const key = this.#key()
      this.need(':')
      if (members.has(key)) throw new NoLiteral()
      members.set(key, this.value(depth + 1))
      if (!this.take(',')) {
        this.need('}')
        break
      }
    }
    return objectOf(members)
  }

  #items(depth: number): string {
    const items: string[] = []
    while (!this.take(']')) {
      items.push(this.value(depth + 1))
      if (!this.take(',')) {
        this.need(']')
        break
      }
    }
    return items.join(', ')
  }

  #key(): string {
    this.skip()
    const quoted = this.#string()
    if (quoted !== null) return quoted
    const bare = this.#notation.bareKeys ? this.match(bareKey) : ''
    if (bare === '') throw new NoLiteral()
    return bare
  }

  #string(): string | null {
    const found = this.#notation.string(this.#text, this.#at)
    if (found === null) return null
    this.#at = found.end
    return found.value
  }
}
