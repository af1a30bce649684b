import type { JsonNode } from '../json/json-text.ts'

/**
 * A value inside a running template, as Python would hold it. Integers are numbers, or bigints beyond 2^53; `null` is None,
 * `undefined` is jinja2's Undefined.
 */
export type Value =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | Value[]
  | Float
  | Tuple
  | Dictionary
  | Iteration
  | Namespace
  | Loop
  | Callable

/** A number that Python prints with a point or an exponent. */
export class Float {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

export class Tuple {
  readonly items: readonly Value[]

  constructor(items: readonly Value[]) {
    this.items = items
  }
}

/** A dictionary of Python. Keys are text, integers or None. `json` is its JSON text if known. */
export class Dictionary extends Map<string | number | null, Value> {
  json: string | undefined
}

/** The items of a generator or of a view of a dictionary. A generator yields them only once. */
export class Iteration {
  readonly kind: 'generator' | 'dict_items' | 'dict_keys' | 'dict_values'
  #items: Value[]

  constructor(kind: Iteration['kind'], items: Value[]) {
    this.kind = kind
    this.#items = items
  }

  get size(): number {
    if (this.kind === 'generator') throw new TypeError("object of type 'generator' has no len()")
    return this.#items.length
  }

  take(): Value[] {
    const items = this.#items
    if (this.kind === 'generator') this.#items = []
    return items
  }
}

export class Namespace {
  readonly fields: Map<string, Value>

  constructor(fields: Map<string, Value>) {
    this.fields = fields
  }
}

/** The variable `loop`. Each loop has one, which moves on with every turn. */
export class Loop {
  readonly items: readonly Value[]
  index0 = 0
  #changed: string | null = null

  constructor(items: readonly Value[]) {
    this.items = items
  }

  /** `loop.changed(…)`: whether the text of the arguments differs from that of the last call. */
  changed(text: string): boolean {
    const differs = this.#changed !== text
    this.#changed = text
    return differs
  }
}

export type Keywords = ReadonlyMap<string, Value>
export const noKeywords: Keywords = new Map()

export class Callable {
  readonly call: (args: readonly Value[], keywords: Keywords) => Value

  constructor(call: (args: readonly Value[], keywords: Keywords) => Value) {
    this.call = call
  }
}

/** Name of a value's type in Python, for messages. */
export function typeName(value: Value): string {
  switch (typeof value) {
    case 'string':
      return 'str'
    case 'number':
    case 'bigint':
      return 'int'
    case 'boolean':
      return 'bool'
    case 'undefined':
      return 'Undefined'
  }
  if (value === null) return 'NoneType'
  if (Array.isArray(value)) return 'list'
  if (value instanceof Dictionary) return 'dict'
  if (value instanceof Iteration) return value.kind
  return value.constructor.name.toLowerCase()
}

/** `bool(value)` of Python. */
export function truthy(value: Value): boolean {
  if (typeof value === 'string') return value !== ''
  if (typeof value !== 'object' || value === null) return Boolean(value)
  if (Array.isArray(value)) return value.length > 0
  if (value instanceof Dictionary) return value.size > 0
  if (value instanceof Float) return value.value !== 0
  if (value instanceof Tuple) return value.items.length > 0
  if (value instanceof Iteration) return value.kind === 'generator' || value.size > 0
  return true
}

/**
 * The items that Python's `for` iterates over: items of a list, keys of a dictionary, characters of a string; none for an undefined value.
 */
export function iterate(value: Value): readonly Value[] {
  if (Array.isArray(value)) return value
  if (value instanceof Dictionary) return [...value.keys()]
  if (typeof value === 'string') return Array.from(value)
  if (value === undefined) return []
  if (value instanceof Tuple) return value.items
  if (value instanceof Iteration) return value.take()
  throw new TypeError(`'${typeName(value)}' object is not iterable`)
}

/** `len(value)` of Python. */
export function lengthOf(value: Value): number {
  if (Array.isArray(value)) return value.length
  if (typeof value === 'string') return codePoints(value)
  if (value instanceof Dictionary || value instanceof Iteration) return value.size
  if (value instanceof Tuple) return value.items.length
  if (value === undefined) return 0
  throw new TypeError(`object of type '${typeName(value)}' has no len()`)
}

function codePoints(text: string): number {
  let count = text.length
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index)
    if (unit < 0xd800 || unit > 0xdbff) continue
    const next = text.charCodeAt(index + 1)
    if (next >= 0xdc00 && next <= 0xdfff) {
      count -= 1
      index += 1
    }
  }
  return count
}

/** A key of a dictionary as it is stored. */
export function toKey(value: Value): string | number | null {
  if (typeof value === 'string' || typeof value === 'number' || value === null) return value
  if (value instanceof Float && Number.isInteger(value.value)) return value.value
  throw new TypeError(`a ${typeName(value)} as the key of a dictionary is not supported`)
}

/** Turns a JSON value into what a template sees of Python's `json.loads`. Numbers keep their spelling, and keys their order. */
export function fromJson(node: JsonNode): Value {
  switch (node.kind) {
    case 'null':
      return null
    case 'boolean':
    case 'string':
      return node.value
    case 'number':
      return numberFromJson(node.text)
    case 'array':
      return node.items.map(fromJson)
    case 'object': {
      const dictionary = new Dictionary()
      for (const [key, member] of node.members) dictionary.set(key, fromJson(member.node))
      return dictionary
    }
  }
}

function numberFromJson(text: string): Value {
  if (/[.eE]/.test(text)) return new Float(Number(text))
  const value = Number(text)
  return Number.isSafeInteger(value) ? value + 0 : BigInt(text)
}

/** Turns a plain JavaScript value, an argument of a template, into what a template sees. */
export function fromPlain(value: unknown): Value {
  if (value === undefined || value === null || typeof value === 'string' || typeof value === 'boolean') return value as Value
  if (typeof value === 'number') return Number.isInteger(value) ? value : new Float(value)
  if (Array.isArray(value)) return value.map(fromPlain)
  const dictionary = new Dictionary()
  for (const [key, member] of Object.entries(value as object)) dictionary.set(key, fromPlain(member))
  return dictionary
}
