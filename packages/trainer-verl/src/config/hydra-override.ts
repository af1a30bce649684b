/** One Hydra override, such as `+a.b=1`. */
export interface HydraOverride {
  /** `''` sets a key that exists, `+` adds one, `++` does either, `~` removes one. */
  readonly prefix: '' | '+' | '++' | '~'
  readonly path: string
  readonly value: unknown
}

const shape = /^(\+\+|\+|~)?([^=\s][^=]*?)(?:=([\s\S]*))?$/

/** Parses an override in Hydra's grammar (hydra-core 1.3, OverrideParser.g4); returns a sentence where it is invalid. */
export function parseOverride(text: string): HydraOverride | string {
  const match = shape.exec(text.trim())
  if (text.trim().startsWith('-')) return `"${text}" is a flag of Hydra, not an override; pass it to the script instead.`
  if (!match?.[2]) return `"${text}" is no override; write key=value.`
  const prefix = (match[1] ?? '') as HydraOverride['prefix']
  const path = match[2].trim()
  if (match[3] === undefined) {
    if (prefix === '~') return { prefix, path, value: undefined }
    return `"${text}" is no override; write key=value.`
  }
  const reader = new ValueReader(match[3])
  try {
    return { prefix, path, value: reader.whole() }
  } catch (error) {
    return `"${text}" cannot be read: ${(error as Error).message}.`
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

/** Python reads `1e-06` as a float, and what has neither point nor exponent as an integer. */
const formatNumber = (value: number) =>
  Number.isFinite(value) ? String(value) : value > 0 ? '.inf' : Number.isNaN(value) ? '.nan' : '-.inf'

const plain = /^[A-Za-z/_][\w./@-]*$/

/** Text that Hydra does not take for anything else stays as it is; the rest is quoted, in which only quotes and the backslashes before them are escaped. */
function formatText(text: string): string {
  if (plain.test(text) && typeof bareValue(text) === 'string') return text
  return `'${text.replace(/(\\*)('|$)/g, (_, slashes: string, quote: string) => slashes + slashes + (quote ? "\\'" : ''))}'`
}

/** The value of an unquoted word. */
export function bareValue(word: string): unknown {
  if (/^(null)$/i.test(word)) return null
  if (/^true$/i.test(word)) return true
  if (/^false$/i.test(word)) return false
  if (/^[+-]?\d[\d_]*$/.test(word)) return Number(word.replaceAll('_', ''))
  if (/^[+-]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(e[+-]?\d+)?$/i.test(word)) return Number(word.replaceAll('_', ''))
  if (/^[+-]?\.?inf$/i.test(word)) return word.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  if (/^\.?nan$/i.test(word)) return Number.NaN
  return word
}

class ValueReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  whole(): unknown {
    if (this.#text.trim() === '') return ''
    const value = this.#value('')
    this.#blanks()
    if (this.#at < this.#text.length) {
      const rest = this.#text.slice(this.#at)
      throw new Error(
        rest.startsWith(',') ? 'several values with commas are a sweep; write [a,b] for a list' : `"${rest}" stands after the value`,
      )
    }
    return value
  }

  #blanks(): void {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at++
  }

  #value(end: string): unknown {
    this.#blanks()
    const next = this.#text[this.#at]
    if (next === '[') return this.#list()
    if (next === '{') return this.#mapping()
    if (next === "'" || next === '"') return this.#quoted(next)
    return this.#bare(end)
  }

  #list(): unknown[] {
    const items: unknown[] = []
    this.#at++
    for (;;) {
      this.#blanks()
      if (this.#take(']')) return items
      items.push(this.#value(']'))
      this.#blanks()
      if (!this.#take(',') && this.#text[this.#at] !== ']') throw new Error('a list is not closed with ]')
    }
  }

  #mapping(): Record<string, unknown> {
    const members: [string, unknown][] = []
    this.#at++
    for (;;) {
      this.#blanks()
      if (this.#take('}')) return Object.fromEntries(members)
      const next = this.#text[this.#at]
      const key = next === "'" || next === '"' ? this.#quoted(next) : String(this.#bare(':}'))
      this.#blanks()
      if (!this.#take(':')) throw new Error('a mapping has a key without a value')
      members.push([key, this.#value('}')])
      this.#blanks()
      if (!this.#take(',') && this.#text[this.#at] !== '}') throw new Error('a mapping is not closed with }')
    }
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false
    this.#at++
    return true
  }

  #quoted(quote: string): string {
    let value = ''
    for (this.#at++; this.#at < this.#text.length; this.#at++) {
      const run = /^\\+/.exec(this.#text.slice(this.#at))?.[0] ?? ''
      const after = this.#text[this.#at + run.length]
      if (run && after === quote) {
        value += '\\'.repeat(Math.floor(run.length / 2))
        this.#at += run.length
        if (run.length % 2 === 1) value += quote
        else {
          this.#at++
          return value
        }
      } else if (run) {
        value += run
        this.#at += run.length - 1
      } else if (this.#text[this.#at] === quote) {
        this.#at++
        return value
      } else value += this.#text[this.#at]
    }
    throw new Error(`a text is not closed with ${quote}`)
  }

  /** Reads to the end of a value; `${…}` may contain anything. */
  #bare(end: string): unknown {
    const start = this.#at
    let depth = 0
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at]!
      if (this.#text.startsWith('${', this.#at)) depth++
      else if (character === '}' && depth > 0) depth--
      else if (depth === 0 && (character === ',' || end.includes(character))) break
      else if (depth === 0 && /[=[\]{}'"]/.test(character)) throw new Error(`${character} needs quotes around the value`)
    }
    const word = this.#text.slice(start, this.#at).trim()
    if (word === '') throw new Error('a value is missing')
    return bareValue(word)
  }
}
