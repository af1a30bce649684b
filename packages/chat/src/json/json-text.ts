/** A JSON value that keeps the spelling of its numbers and the order of its keys. */
export type JsonNode =
  | { readonly kind: 'null' }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'array'; readonly items: readonly JsonNode[] }
  | { readonly kind: 'object'; readonly members: ReadonlyMap<string, JsonMember> }

export interface JsonMember {
  readonly node: JsonNode
  /** The value exactly as written. */
  readonly text: string
}

const whitespace = /[ \t\n\r]*/y
const numberText = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const stringText = /"(?:[^"\\]|\\.)*"/y

/**
 * Reads JSON as `JSON.parse` does, but keeps the spelling of numbers, the order of keys and the text of members.
 * Throws SyntaxError as it does.
 */
export function readJson(text: string): JsonNode {
  JSON.parse(text)
  return new ValidJsonReader(text).read()
}

/** Reads text that is known to be valid JSON. */
class ValidJsonReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): JsonNode {
    this.#skip()
    const first = this.#text[this.#at]
    if (first === '{') return this.#object()
    if (first === '[') return this.#array()
    if (first === '"') return { kind: 'string', value: this.#string() }
    if (first === 't') return this.#word('true', { kind: 'boolean', value: true })
    if (first === 'f') return this.#word('false', { kind: 'boolean', value: false })
    if (first === 'n') return this.#word('null', { kind: 'null' })
    return { kind: 'number', text: this.#match(numberText) }
  }

  #object(): JsonNode {
    const members = new Map<string, JsonMember>()
    this.#at += 1
    this.#skip()
    while (this.#text[this.#at] !== '}') {
      const key = this.#string()
      this.#skip()
      this.#at += 1
      this.#skip()
      const start = this.#at
      const node = this.read()
      members.set(key, { node, text: this.#text.slice(start, this.#at) })
      this.#skipSeparator()
    }
    this.#at += 1
    return { kind: 'object', members }
  }

  #array(): JsonNode {
    const items: JsonNode[] = []
    this.#at += 1
    this.#skip()
    while (this.#text[this.#at] !== ']') {
      items.push(this.read())
      this.#skipSeparator()
    }
    this.#at += 1
    return { kind: 'array', items }
  }

  #string(): string {
    return JSON.parse(this.#match(stringText)) as string
  }

  #word(word: string, node: JsonNode): JsonNode {
    this.#at += word.length
    return node
  }

  #skipSeparator(): void {
    this.#skip()
    if (this.#text[this.#at] === ',') this.#at += 1
    this.#skip()
  }

  #skip(): void {
    this.#match(whitespace)
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.#at += found.length
    return found
  }
}

/** Whether texts are equal as JSON, with numbers by value and object keys in any order. Text that is not JSON is equal only to itself. */
export function equalJson(left: string, right: string): boolean {
  if (left === right) return true
  try {
    return equalValues(JSON.parse(left), JSON.parse(right))
  } catch {
    return false
  }
}

function equalValues(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  if (Array.isArray(left) !== Array.isArray(right)) return false
  const leftEntries = Object.entries(left)
  if (leftEntries.length !== Object.keys(right).length) return false
  return leftEntries.every(([key, value]) => Object.hasOwn(right, key) && equalValues(value, (right as Record<string, unknown>)[key]))
}
