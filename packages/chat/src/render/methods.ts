import { equal, numeric } from './operators.ts'
import { pythonSpace, pythonString, pythonStrip } from './python-text.ts'
import { Dictionary, Iteration, iterate, type Keywords, Tuple, toKey, typeName, type Value } from './values.ts'

export type Method<T> = (owner: T, args: readonly Value[], keywords: Keywords) => Value

function text(value: Value, what: string): string {
  if (typeof value !== 'string') throw new TypeError(`${what} must be str, not ${typeName(value)}`)
  return value
}

const characters = (value: Value): string | null => (value === undefined || value === null ? null : text(value, 'characters to strip'))
const limit = (value: Value): number => (value === undefined || value === null ? -1 : (numeric(value) ?? -1))

/** Methods of `str`. */
export const stringMethods: Readonly<Record<string, Method<string>>> = {
  strip: (owner, [chars]) => pythonStrip(owner, characters(chars), 'both'),
  lstrip: (owner, [chars]) => pythonStrip(owner, characters(chars), 'left'),
  rstrip: (owner, [chars]) => pythonStrip(owner, characters(chars), 'right'),
  upper: (owner) => owner.toUpperCase(),
  lower: (owner) => owner.toLowerCase(),
  capitalize,
  title: (owner) => owner.toLowerCase().replace(/(^|[^\p{L}])(\p{L})/gu, (_, before, letter) => before + letter.toUpperCase()),
  startswith: (owner, [prefix]) => some(prefix, (part) => owner.startsWith(part)),
  endswith: (owner, [suffix]) => some(suffix, (part) => owner.endsWith(part)),
  removeprefix: (owner, [prefix]) => (owner.startsWith(text(prefix, 'prefix')) ? owner.slice((prefix as string).length) : owner),
  removesuffix: (owner, [suffix]) =>
    suffix !== '' && owner.endsWith(text(suffix, 'suffix')) ? owner.slice(0, -(suffix as string).length) : owner,
  split: (owner, [separator, most], keywords) =>
    split(owner, separator ?? keywords.get('sep'), limit(most ?? keywords.get('maxsplit')), false),
  rsplit: (owner, [separator, most], keywords) =>
    split(owner, separator ?? keywords.get('sep'), limit(most ?? keywords.get('maxsplit')), true),
  splitlines: (owner) => {
    const lines = owner.split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/)
    if (lines.at(-1) === '') lines.pop()
    return lines
  },
  replace: (owner, [old, substitute, most], keywords) =>
    replaceText(owner, text(old, 'replace() argument 1'), text(substitute, 'replace() argument 2'), limit(most ?? keywords.get('count'))),
  join: (owner, [items]) => {
    const parts = iterate(items)
    for (const part of parts) text(part, 'sequence item')
    return parts.join(owner)
  },
  find: (owner, [part]) => pointIndex(owner, owner.indexOf(text(part, 'find() argument 1'))),
  rfind: (owner, [part]) => pointIndex(owner, owner.lastIndexOf(text(part, 'rfind() argument 1'))),
  index: (owner, [part]) => {
    const at = owner.indexOf(text(part, 'index() argument 1'))
    if (at < 0) throw new Error('substring not found')
    return pointIndex(owner, at)
  },
  count: (owner, [part]) => owner.split(text(part, 'count() argument 1')).length - 1,
  partition: (owner, [separator]) => {
    const at = owner.indexOf(text(separator, 'separator'))
    return new Tuple(at < 0 ? [owner, '', ''] : [owner.slice(0, at), separator, owner.slice(at + (separator as string).length)])
  },
  isdigit: (owner) => /^\p{Nd}+$/u.test(owner),
  isnumeric: (owner) => /^\p{N}+$/u.test(owner),
  isalpha: (owner) => /^\p{L}+$/u.test(owner),
  isalnum: (owner) => /^[\p{L}\p{N}]+$/u.test(owner),
  isspace: (owner) => owner !== '' && pythonStrip(owner, null, 'both') === '',
  isupper: (owner) => owner !== owner.toLowerCase() && owner === owner.toUpperCase(),
  islower: (owner) => owner !== owner.toUpperCase() && owner === owner.toLowerCase(),
  format: (owner, args, keywords) => formatText(owner, args, keywords),
  zfill: (owner, [width]) => {
    const sign = /^[+-]/.exec(owner)?.[0] ?? ''
    const missing = (numeric(width) ?? 0) - Array.from(owner).length
    return sign + '0'.repeat(Math.max(0, missing)) + owner.slice(sign.length)
  },
}

/** `str.format` with plain fields: `{}`, `{0}` and `{name}`. */
function formatText(owner: string, args: readonly Value[], keywords: Keywords): string {
  let next = 0
  return owner.replace(/\{\{|\}\}|\{([^{}]*)\}/g, (found, field?: string) => {
    if (field === undefined) return found.charAt(0)
    if (!/^\w*$/.test(field)) throw new Error(`the field {${field}} of str.format is not supported`)
    const position = field === '' ? next++ : /^\d+$/.test(field) ? Number(field) : null
    if (position === null ? !keywords.has(field) : position >= args.length) throw new Error(`str.format has no value for {${field}}`)
    return position === null ? pythonString(keywords.get(field)) : pythonString(args[position])
  })
}

export function capitalize(owner: string): string {
  return owner.charAt(0).toUpperCase() + owner.slice(1).toLowerCase()
}

function some(argument: Value, test: (part: string) => boolean): boolean {
  if (argument instanceof Tuple) return argument.items.some((item) => test(text(item, 'item of the tuple')))
  return test(text(argument, 'first argument'))
}

function pointIndex(owner: string, at: number): number {
  return at <= 0 ? at : Array.from(owner.slice(0, at)).length
}

function split(owner: string, separator: Value, most: number, fromRight: boolean): Value[] {
  if (separator === undefined || separator === null) return splitSpace(owner, most, fromRight)
  const by = text(separator, 'separator')
  if (by === '') throw new Error('empty separator')
  const parts = owner.split(by)
  if (most < 0 || parts.length <= most + 1) return parts
  if (fromRight) return [parts.slice(0, parts.length - most).join(by), ...parts.slice(parts.length - most)]
  return [...parts.slice(0, most), parts.slice(most).join(by)]
}

function splitSpace(owner: string, most: number, fromRight: boolean): Value[] {
  const isSpace = (index: number) => pythonSpace.includes(owner.charAt(index))
  const words: [start: number, end: number][] = []
  for (let index = 0; index < owner.length; ) {
    while (index < owner.length && isSpace(index)) index += 1
    const start = index
    while (index < owner.length && !isSpace(index)) index += 1
    if (index > start) words.push([start, index])
  }
  const all = words.map(([start, end]) => owner.slice(start, end))
  if (most < 0 || words.length <= most) return all
  if (fromRight) return [owner.slice(0, words[words.length - most - 1]![1]), ...all.slice(words.length - most)]
  return [...all.slice(0, most), owner.slice(words[most]![0])]
}

/** `str.replace`, all occurrences for a negative `most`. */
export function replaceText(owner: string, old: string, substitute: string, most: number): string {
  if (most < 0) return old === '' ? interleave(owner, substitute) : owner.replaceAll(old, () => substitute)
  const parts = old === '' ? ['', ...Array.from(owner), ''] : owner.split(old)
  return parts.reduce((result, part, index) => result + (index === 0 ? '' : index <= most ? substitute : old) + part, '')
}

function interleave(owner: string, substitute: string): string {
  return substitute + Array.from(owner, (character) => character + substitute).join('')
}

/** Methods of `dict` that do not write. The sandbox refuses the others. */
export const dictionaryMethods: Readonly<Record<string, Method<Dictionary>>> = {
  items: (owner) => new Iteration('dict_items', items(owner)),
  keys: (owner) => new Iteration('dict_keys', [...owner.keys()]),
  values: (owner) => new Iteration('dict_values', [...owner.values()]),
  get: (owner, [key, fallback = null]) => (owner.has(toKey(key)) ? owner.get(toKey(key)) : fallback),
  copy: (owner) => new Dictionary(owner),
  ...refused('update', 'pop', 'popitem', 'clear', 'setdefault'),
}

export function items(owner: Dictionary): Value[] {
  return Array.from(owner, (entry) => new Tuple(entry))
}

/** Methods of `list` that do not write. */
export const listMethods: Readonly<Record<string, Method<Value[]>>> = {
  index: (owner, [value]) => {
    const at = owner.findIndex((item) => equal(item, value))
    if (at < 0) throw new Error(`${pythonString(value)} is not in list`)
    return at
  },
  count: (owner, [value]) => owner.filter((item) => equal(item, value)).length,
  copy: (owner) => [...owner],
  ...refused('append', 'extend', 'insert', 'pop', 'remove', 'reverse', 'sort', 'clear'),
}

/** Methods that throw, because transformers renders in jinja2's sandbox for immutable data. */
function refused(...names: readonly string[]): Record<string, () => never> {
  return Object.fromEntries(
    names.map((name) => [
      name,
      () => {
        throw new Error(`the method ${name} writes, which the sandbox does not allow`)
      },
    ]),
  )
}

const attributes = new Set(['cycle', 'changed'])

const unsupported = new Set('casefold center encode expandtabs ljust rjust rindex rpartition swapcase translate format_map'.split(' '))

/** Throws SyntaxError for an unsupported method of Python. A method that Python lacks is undefined there too. */
export function requireMethod(name: string): void {
  if (unsupported.has(name)) throw new SyntaxError(`the method ${name} is not supported`)
}

/** Whether some kind of value has a method of that name. */
export function isKnownMethod(name: string): boolean {
  return [stringMethods, dictionaryMethods, listMethods].some((table) => Object.hasOwn(table, name)) || attributes.has(name)
}
