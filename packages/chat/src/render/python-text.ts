import { Dictionary, Float, Iteration, Tuple, typeName, type Value } from './values.ts'

/** `str(value)` of Python. */
export function pythonString(value: Value): string {
  if (typeof value === 'string') return value
  if (value === undefined) return ''
  return pythonRepr(value)
}

/** `repr(value)` of Python. */
export function pythonRepr(value: Value): string {
  switch (typeof value) {
    case 'string':
      return quote(value)
    case 'number':
    case 'bigint':
      return integerText(value)
    case 'boolean':
      return value ? 'True' : 'False'
    case 'undefined':
      return 'Undefined'
  }
  if (value === null) return 'None'
  if (value instanceof Float) return pythonFloat(value.value)
  if (Array.isArray(value)) return `[${value.map(pythonRepr).join(', ')}]`
  if (value instanceof Tuple) {
    const items = value.items.map(pythonRepr).join(', ')
    return value.items.length === 1 ? `(${items},)` : `(${items})`
  }
  if (value instanceof Dictionary) {
    return `{${[...value].map(([key, member]) => `${pythonRepr(key)}: ${pythonRepr(member)}`).join(', ')}}`
  }
  if (value instanceof Iteration && value.kind !== 'generator') return `${value.kind}(${pythonRepr(value.take())})`
  throw new Error(`a ${typeName(value)} cannot be printed the way Python prints it`)
}

/** `repr(float)` of Python: the shortest digits, exponent form below 1e-4 and from 1e16 on. */
function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0'
  const [mantissa = '', exponentText = '0'] = value.toExponential().split('e')
  const exponent = Number(exponentText)
  if (exponent < -4 || exponent >= 16) {
    return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
  }
  const sign = mantissa.startsWith('-') ? '-' : ''
  const digits = mantissa.replace('-', '').replace('.', '')
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0')
  return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`
}

function integerText(value: number | bigint): string {
  return typeof value === 'bigint' || Number.isSafeInteger(value) ? String(value) : BigInt(value).toString()
}

function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'"
  const escaped = text.replace(/[\\'"]|[\p{C}\p{Z}]/gu, (character) => {
    if (character === '\\') return '\\\\'
    if (character === "'" || character === '"') return character === mark ? `\\${character}` : character
    return escapeUnprintable(character)
  })
  return mark + escaped + mark
}

function escapeUnprintable(character: string): string {
  if (character === ' ') return ' '
  if (character === '\n') return '\\n'
  if (character === '\r') return '\\r'
  if (character === '\t') return '\\t'
  const code = character.codePointAt(0) ?? 0
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`
  return code <= 0xffff ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`
}

export interface DumpOptions {
  readonly indent: string | null
  readonly ensureAscii: boolean
  readonly separators: readonly [string, string] | null
  readonly sortKeys: boolean
}

export const defaultDump: DumpOptions = { indent: null, ensureAscii: false, separators: null, sortKeys: false }

/**
 * `json.dumps(value, ensure_ascii=False)` of Python, as transformers' `tojson` filter calls it. Throws for values that Python cannot dump.
 */
export function pythonJson(value: Value, options: DumpOptions = defaultDump, depth = 0): string {
  switch (typeof value) {
    case 'string':
      return jsonString(value, options)
    case 'number':
    case 'bigint':
      return integerText(value)
    case 'boolean':
      return value ? 'true' : 'false'
  }
  if (value === null) return 'null'
  if (value instanceof Float) return jsonFloat(value.value)
  if (Array.isArray(value) || value instanceof Tuple) {
    const items = Array.isArray(value) ? value : value.items
    return wrap(
      '[',
      items.map((item) => pythonJson(item, options, depth + 1)),
      ']',
      options,
      depth,
    )
  }
  if (!(value instanceof Dictionary)) throw new Error(`Object of type ${typeName(value)} is not JSON serializable`)
  if (value.json !== undefined && options === defaultDump) return value.json
  const keySeparator = options.separators?.[1] ?? ': '
  const entries = [...value].map(([key, member]) => [key === null ? 'null' : String(key), member] as const)
  if (options.sortKeys) entries.sort(([left], [right]) => compareCodePoints(left, right))
  const members = entries.map(([key, member]) => jsonString(key, options) + keySeparator + pythonJson(member, options, depth + 1))
  return wrap('{', members, '}', options, depth)
}

function wrap(open: string, items: readonly string[], close: string, options: DumpOptions, depth: number): string {
  if (items.length === 0) return open + close
  const separator = options.separators?.[0] ?? (options.indent === null ? ', ' : ',')
  if (options.indent === null) return open + items.join(separator) + close
  const outer = `\n${options.indent.repeat(depth)}`
  const inner = outer + options.indent
  return open + inner + items.join(separator + inner) + outer + close
}

/** Writes a JSON string. Python writes a lone surrogate as it is, which `JSON.stringify` would escape. */
function jsonString(text: string, { ensureAscii }: DumpOptions): string {
  const json = text.isWellFormed() ? JSON.stringify(text) : JSON.stringify(text).replace(/\\u(d[89a-f][0-9a-f]{2})/g, unescapeSurrogate)
  if (!ensureAscii) return json
  return json.replace(/[\x7f-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function unescapeSurrogate(escaped: string, code: string, at: number, whole: string): string {
  let backslashes = 0
  while (whole[at - 1 - backslashes] === '\\') backslashes += 1
  return backslashes % 2 === 0 ? String.fromCharCode(Number.parseInt(code, 16)) : escaped
}

function jsonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity'
  return pythonFloat(value)
}

/** Compares strings by code point, as Python does. JavaScript compares UTF-16 units. */
export function compareCodePoints(left: string, right: string): number {
  if (left === right) return 0
  const a = Array.from(left, (character) => character.codePointAt(0) ?? 0)
  const b = Array.from(right, (character) => character.codePointAt(0) ?? 0)
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index += 1) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

export const pythonSpace =
  '\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000'

/** `str.strip(chars)` of Python, on one side or both. `null` strips Python's white space. */
export function pythonStrip(text: string, characters: string | null, side: 'both' | 'left' | 'right'): string {
  const set = characters ?? pythonSpace
  let start = 0
  let end = text.length
  if (side !== 'right') while (start < end && set.includes(text.charAt(start))) start += 1
  if (side !== 'left') while (end > start && set.includes(text.charAt(end - 1))) end -= 1
  return start === 0 && end === text.length ? text : text.slice(start, end)
}
