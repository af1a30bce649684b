import { parse } from 'yaml'

/** One Hydra override, such as `+a.b=1`. */
export interface HydraOverride {
  /** `''` sets an existing key, `+` adds one, `++` does either, `~` removes one. */
  readonly prefix: '' | '+' | '++' | '~'
  readonly path: string
  readonly value: unknown
}

const shape = /^(\+\+|\+|~)?([^=\s][^=]*?)(?:=([\s\S]*))?$/

/**
 * Parses an override; returns a sentence if that fails. The value is that of YAML for the text, which equals Hydra's for plain values. The
 * installed Hydra has the last word.
 */
export function parseOverride(text: string): HydraOverride | string {
  const match = shape.exec(text.trim())
  if (text.trim().startsWith('-')) return `"${text}" is a flag of Hydra, not an override; pass it to the script instead.`
  if (!match?.[2]) return `"${text}" is no override; write key=value.`
  const prefix = (match[1] ?? '') as HydraOverride['prefix']
  const path = match[2].trim()
  if (match[3] === undefined && prefix !== '~') return `"${text}" is no override; write key=value.`
  return { prefix, path, value: match[3] === undefined ? undefined : yamlValue(match[3]) }
}

function yamlValue(text: string): unknown {
  if (text.trim() === '') return ''
  try {
    return parse(text)
  } catch {
    return text
  }
}

/** An override that Hydra reads as exactly this value. */
export function formatOverride(path: string, value: unknown, prefix: HydraOverride['prefix'] = ''): string {
  return `${prefix}${path}=${formatValue(value)}`
}

function formatValue(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return formatNumber(value)
  if (typeof value === 'string') return formatText(value)
  if (Array.isArray(value)) return `[${value.map(formatValue).join(',')}]`
  return `{${Object.entries(value)
    .map(([key, member]) => `${formatText(key)}:${formatValue(member)}`)
    .join(',')}}`
}

/** Formats a number for Python, which reads `1e-06` as a float, and a number without point and exponent as an integer. */
const formatNumber = (value: number) =>
  Number.isFinite(value) ? String(value) : value > 0 ? '.inf' : Number.isNaN(value) ? '.nan' : '-.inf'

const plain = /^[A-Za-z/_][\w./@-]*$/

/**
 * Formats a text. One that Hydra takes for nothing else stays as it is. Otherwise it is quoted, and only quotes and the backslashes before
 * them are escaped.
 */
function formatText(text: string): string {
  if (plain.test(text) && typeof bareValue(text) === 'string') return text
  return `'${text.replace(/(\\*)('|$)/g, (_, slashes: string, quote: string) => slashes + slashes + (quote ? "\\'" : ''))}'`
}

/** The value of an unquoted word. */
function bareValue(word: string): unknown {
  if (/^(null)$/i.test(word)) return null
  if (/^true$/i.test(word)) return true
  if (/^false$/i.test(word)) return false
  if (/^[+-]?\d[\d_]*$/.test(word)) return Number(word.replaceAll('_', ''))
  if (/^[+-]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(e[+-]?\d+)?$/i.test(word)) return Number(word.replaceAll('_', ''))
  if (/^[+-]?\.?inf$/i.test(word)) return word.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  if (/^\.?nan$/i.test(word)) return Number.NaN
  return word
}
