import { member } from './members.ts'
import { capitalize, items, replaceText } from './methods.ts'
import { compare, equal, numeric, operators } from './operators.ts'
import { type DumpOptions, defaultDump, pythonJson, pythonRepr, pythonString, pythonStrip } from './python-text.ts'
import { testNamed } from './tests.ts'
import {
  Dictionary,
  Float,
  Iteration,
  iterate,
  type Keywords,
  lengthOf,
  noKeywords,
  type Tuple,
  truthy,
  typeName,
  type Value,
} from './values.ts'

export type Filter = (operand: Value, args: readonly Value[], keywords: Keywords) => Value

/** A positional argument, else the keyword of that name. */
const option = (args: readonly Value[], keywords: Keywords, position: number, name: string): Value => args[position] ?? keywords.get(name)
const generator = (values: readonly Value[]): Iteration => new Iteration('generator', [...values])
const whole = (value: Value, fallback: number): number => (value === undefined || value === null ? fallback : (numeric(value) ?? fallback))
const textOf = (value: Value, fallback: string): string => (value === undefined ? fallback : pythonString(value))

/** Filters of jinja2 and the `tojson` of transformers, by name. */
const filters: Readonly<Record<string, Filter>> = {
  tojson: (operand, args, keywords) => (args.length === 0 && keywords.size === 0 ? pythonJson(operand) : dump(operand, args, keywords)),
  string: (operand) => pythonString(operand),
  safe: (operand) => operand,
  trim: (operand, args, keywords) => {
    const characters = option(args, keywords, 0, 'chars')
    return pythonStrip(pythonString(operand), characters === undefined || characters === null ? null : pythonString(characters), 'both')
  },
  upper: (operand) => pythonString(operand).toUpperCase(),
  lower: (operand) => pythonString(operand).toLowerCase(),
  capitalize: (operand) => capitalize(pythonString(operand)),
  title: (operand) =>
    pythonString(operand)
      .split(/([-\s({[<]+)/)
      .map((part) => part.charAt(0).toUpperCase() + part.slice(1).toLowerCase())
      .join(''),
  replace: (operand, args, keywords) => {
    const [old, substitute] = [option(args, keywords, 0, 'old'), option(args, keywords, 1, 'new')]
    if (old === undefined || substitute === undefined) throw new Error('replace needs a text and its substitute')
    return replaceText(pythonString(operand), pythonString(old), pythonString(substitute), whole(option(args, keywords, 2, 'count'), -1))
  },
  indent,
  length: lengthOf,
  count: lengthOf,
  wordcount: (operand) => pythonString(operand).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0,
  list: (operand) => [...iterate(operand)],
  join: (operand, args, keywords) => {
    const by = option(args, keywords, 1, 'attribute')
    const parts = by === undefined ? iterate(operand) : iterate(operand).map((item) => memberPath(item, by))
    return parts.map(pythonString).join(textOf(option(args, keywords, 0, 'd'), ''))
  },
  first: (operand) => iterate(operand)[0],
  last: (operand) => iterate(reversible(operand)).at(-1),
  reverse: (operand) =>
    typeof operand === 'string' ? Array.from(operand).reverse().join('') : generator([...iterate(reversible(operand))].reverse()),
  unique: (operand, args, keywords) => generator(unique(operand, args, keywords)),
  sort: (operand, args, keywords) => {
    const by = option(args, keywords, 2, 'attribute')
    const key = sortKey(truthy(option(args, keywords, 1, 'case_sensitive')))
    return ordered(
      iterate(operand),
      (item) => key(by === undefined ? item : memberPath(item, by)),
      truthy(option(args, keywords, 0, 'reverse')),
    )
  },
  dictsort: (operand, args, keywords) => {
    const key = sortKey(truthy(option(args, keywords, 0, 'case_sensitive')))
    const at = textOf(option(args, keywords, 1, 'by'), 'key') === 'value' ? 1 : 0
    const pairs = items(mapping(operand, 'dictsort'))
    return ordered(pairs, (pair) => key((pair as Tuple).items[at]), truthy(option(args, keywords, 2, 'reverse')))
  },
  items: (operand) => generator(operand === undefined ? [] : items(mapping(operand, 'items'))),
  map: (operand, args, keywords) => generator(whenAny(operand).map(mapper(args, keywords))),
  select: (operand, args) => generator(whenAny(operand).filter(chosen(args))),
  reject: (operand, args) => generator(whenAny(operand).filter((item) => !chosen(args)(item))),
  selectattr: (operand, [by, ...args]) => generator(whenAny(operand).filter((item) => chosen(args)(memberPath(item, by)))),
  rejectattr: (operand, [by, ...args]) => generator(whenAny(operand).filter((item) => !chosen(args)(memberPath(item, by)))),
  min: (operand, args, keywords) => extreme(operand, args, keywords, -1),
  max: (operand, args, keywords) => extreme(operand, args, keywords, 1),
  sum: (operand, args, keywords) => {
    const by = option(args, keywords, 0, 'attribute')
    const start = option(args, keywords, 1, 'start') ?? 0
    return iterate(operand).reduce((total, item) => operators['+']!(total, by === undefined ? item : memberPath(item, by)), start)
  },
  abs: (operand) => (operand instanceof Float ? new Float(Math.abs(operand.value)) : Math.abs(requireNumber(operand, 'abs'))),
  int: (operand, args, keywords) => toInteger(defined(operand, 'int'), option(args, keywords, 0, 'default') ?? 0),
  float: (operand, args, keywords) => {
    const value = typeof operand === 'string' ? readNumber(operand) : numeric(defined(operand, 'float'))
    return value === null ? (option(args, keywords, 0, 'default') ?? new Float(0)) : new Float(value)
  },
  round: (operand, args, keywords) => {
    const scale = 10 ** whole(option(args, keywords, 0, 'precision'), 0)
    const value = requireNumber(operand, 'round') * scale
    const method = textOf(option(args, keywords, 1, 'method'), 'common')
    if (method === 'common' && !(operand instanceof Float)) return requireNumber(operand, 'round')
    return new Float((method === 'ceil' ? Math.ceil(value) : method === 'floor' ? Math.floor(value) : halfEven(value)) / scale)
  },
  default: orDefault,
  d: orDefault,
}

function orDefault(operand: Value, args: readonly Value[], keywords: Keywords): Value {
  const whenFalse = truthy(option(args, keywords, 1, 'boolean'))
  const fallback = args.length > 0 ? args[0] : keywords.has('default_value') ? keywords.get('default_value') : ''
  return operand === undefined || (whenFalse && !truthy(operand)) ? fallback : operand
}

function mapping(operand: Value, filter: string): Dictionary {
  if (!(operand instanceof Dictionary)) throw new TypeError(`the filter ${filter} needs a mapping, not ${typeName(operand)}`)
  return operand
}

function reversible(operand: Value): Value {
  if (operand instanceof Iteration && operand.kind === 'generator') throw new TypeError("'generator' object is not reversible")
  return operand
}

/** Reads a path such as `a.b.0` of an item, which filters take for `attribute`. */
function memberPath(item: Value, path: Value, fallback?: Value): Value {
  if (typeof path !== 'string') return member(item, path)
  let current = item
  for (const part of path.split('.')) {
    const found = /^\d+$/.test(part) ? member(current, Number(part)) : member(current, part)
    current = found === undefined ? fallback : found
  }
  return current
}

function mapper(args: readonly Value[], keywords: Keywords): (item: Value) => Value {
  const by = keywords.get('attribute')
  if (by !== undefined) {
    const fallback = keywords.get('default')
    return (item) => memberPath(item, by, fallback)
  }
  const [name, ...rest] = args
  const filter = filterNamed(pythonString(name))
  return (item) => filter(item, rest, noKeywords)
}

/** The items for `map` and the `select` filters, for which empty values, None included, have none. */
function whenAny(operand: Value): readonly Value[] {
  return truthy(operand) ? iterate(operand) : []
}

const unsupported = new Set(
  'attr batch center e escape filesizeformat forceescape format groupby pprint random slice striptags truncate urlencode urlize wordwrap xmlattr'.split(
    ' ',
  ),
)

/**
 * Finds a filter. Throws SyntaxError for a filter of jinja2 that is unsupported. A filter that jinja2 lacks
 * throws when it is reached, as there.
 */
export function filterNamed(name: string): Filter {
  if (Object.hasOwn(filters, name)) return filters[name]!
  if (unsupported.has(name)) throw new SyntaxError(`the filter ${name} is not supported`)
  return () => {
    throw new Error(`No filter named '${name}'.`)
  }
}

function chosen([name, ...args]: readonly Value[]): (item: Value) => boolean {
  if (name === undefined) return truthy
  const test = testNamed(pythonString(name))
  return (item) => test(item, args)
}

function sortKey(caseSensitive: boolean): (value: Value) => Value {
  return (value) => (typeof value === 'string' && !caseSensitive ? value.toLowerCase() : value)
}

function ordered(values: readonly Value[], key: (value: Value) => Value, reverse: boolean): Value[] {
  const keyed = values.map((value) => ({ value, key: key(value) }))
  // jinja2 compares keys as lists, and Python compares lists by their first unequal items.
  const order = (left: Value, right: Value) => (equal(left, right) ? 0 : compare('<', left, right))
  keyed.sort((left, right) => (reverse ? order(right.key, left.key) : order(left.key, right.key)))
  return keyed.map(({ value }) => value)
}

function extreme(operand: Value, args: readonly Value[], keywords: Keywords, sign: 1 | -1): Value {
  const by = option(args, keywords, 1, 'attribute')
  const fold = sortKey(truthy(option(args, keywords, 0, 'case_sensitive')))
  const key = (item: Value) => fold(by === undefined ? item : memberPath(item, by))
  const values = iterate(operand)
  if (values.length === 0) return undefined
  return values.reduce((best, item) => (Math.sign(compare('<', key(item), key(best))) === sign ? item : best))
}

/** Keeps first occurrences. Texts that differ only in case are the same, as in jinja2. */
function unique(operand: Value, args: readonly Value[], keywords: Keywords): Value[] {
  const by = option(args, keywords, 1, 'attribute')
  const key = sortKey(truthy(option(args, keywords, 0, 'case_sensitive')))
  const seen = new Set<string>()
  return iterate(operand).filter((item) => {
    const value = key(by === undefined ? item : memberPath(item, by))
    if (Array.isArray(value) || value instanceof Dictionary) throw new TypeError(`unhashable type: '${typeName(value)}'`)
    const text = pythonRepr(value)
    return !seen.has(text) && seen.add(text)
  })
}

function indent(operand: Value, args: readonly Value[], keywords: Keywords): Value {
  const width = option(args, keywords, 0, 'width')
  const first = truthy(option(args, keywords, 1, 'first'))
  const blank = truthy(option(args, keywords, 2, 'blank'))
  const space = typeof width === 'string' ? width : ' '.repeat(whole(width, 4))
  if (typeof operand !== 'string') throw new TypeError(`the filter indent needs text, not ${typeName(operand)}`)
  const lines = operand.split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/)
  return lines.map((line, index) => ((index === 0 ? first : line !== '' || blank) ? space + line : line)).join('\n')
}

function requireNumber(value: Value, filter: string): number {
  const number = numeric(value)
  if (number === null) throw new TypeError(`the filter ${filter} needs a number, not ${typeName(value)}`)
  return number
}

function defined(value: Value, filter: string): Value {
  if (value === undefined) throw new Error(`the filter ${filter} of an undefined value`)
  return value
}

function readNumber(text: string): number | null {
  const trimmed = pythonStrip(text, null, 'both')
  return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(trimmed) ? Number(trimmed) : null
}

function toInteger(operand: Value, fallback: Value): Value {
  const value = typeof operand === 'string' ? readNumber(operand) : typeof operand === 'bigint' ? operand : numeric(operand)
  if (value === null) return fallback
  return typeof value === 'bigint' ? value : Math.trunc(value) + 0
}

function halfEven(value: number): number {
  const floor = Math.floor(value)
  const difference = value - floor
  if (difference !== 0.5) return Math.round(value)
  return floor % 2 === 0 ? floor : floor + 1
}

function dump(operand: Value, args: readonly Value[], keywords: Keywords): string {
  const indentation = option(args, keywords, 1, 'indent')
  const separators = option(args, keywords, 2, 'separators')
  const pair = separators === undefined || separators === null ? null : iterate(separators).map(pythonString)
  const options: DumpOptions = {
    ...defaultDump,
    ensureAscii: truthy(option(args, keywords, 0, 'ensure_ascii')),
    indent:
      indentation === undefined || indentation === null
        ? null
        : typeof indentation === 'string'
          ? indentation
          : ' '.repeat(whole(indentation, 0)),
    separators: pair ? [pair[0] ?? ', ', pair[1] ?? ': '] : null,
    sortKeys: truthy(option(args, keywords, 3, 'sort_keys')),
  }
  return pythonJson(operand, options)
}
