// Formats numbers and foreign text.

export const integer = (value: number) => Math.round(value).toLocaleString('en-US').replaceAll(',', '\u2009')
export const fixed = (value: number | null | undefined, digits = 3) =>
  value === null || value === undefined || Number.isNaN(value) ? '–' : value.toFixed(digits).replace('-', '−')
export const signed = (value: number | null, digits = 2) =>
  value !== null && value > 0 ? `+${fixed(value, digits)}` : fixed(value, digits)
/** US dollars with cents, and with four decimals below one dollar. */
export const dollars = (value: number) => `$${value.toFixed(value < 1 ? 4 : 2)}`
export const percent = (part: number, digits = 1) => (Number.isFinite(part) ? `${(100 * part).toFixed(digits)} %` : '–')
export const range = ([low, high]: readonly [number, number], digits = 3) => `[${fixed(low, digits)}, ${fixed(high, digits)}]`
/** A reward with at most three digits, and as short as possible. */
export const points = (reward: number | null) => (reward === null ? '–' : String(Number(reward.toFixed(3))).replace('-', '−'))

export function seconds(ms: number): string {
  if (ms >= 3_600_000) return `${(ms / 3_600_000).toFixed(1)} h`
  if (ms >= 120_000) return `${(ms / 60_000).toFixed(1)} min`
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms >= 10_000 ? 1 : 2)} s`
  return `${ms.toFixed(ms > 0 && ms < 10 ? 1 : 0)} ms`
}

/** Any metric in few characters. */
export function brief(value: number): string {
  const size = Math.abs(value)
  if (value === 0 || Number.isNaN(value)) return Number.isNaN(value) ? '–' : '0'
  if (size < 1e-3) return value.toExponential(1).replaceAll('-', '−')
  if (Number.isInteger(value) || size >= 1000) return integer(value).replace('-', '−')
  return fixed(value, size >= 100 ? 0 : size >= 10 ? 1 : 3)
}

export function probability(logprob: number): string {
  const value = Math.exp(logprob)
  if (value > 0.9995 && value < 1) return '> 0.999'
  return value < 0.0005 ? '< 0.001' : value.toFixed(3)
}

/** Characters without a shape of their own. Joiners stay within emoji and in scripts that are written with them. */
const hidden = /[\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]|(?<![\p{Extended_Pictographic}\p{Sk}\p{M}\p{Lo}])[\u200c\u200d]/gu

/** Text with its white space, control and direction characters made visible. It is never interpreted. */
export const visible = (text: string) =>
  text
    .replaceAll('\n', '↵')
    .replaceAll('\t', '⇥')
    .replace(/[\u0000-\u001f\u007f-\u009f]/g, (control) => `\\x${control.charCodeAt(0).toString(16).padStart(2, '0')}`)
    .replace(hidden, (control) => `\\u${control.charCodeAt(0).toString(16)}`)

/** Prose of models and tools, with its lines kept. Control and direction characters are made visible. */
export const prose = (text: string) =>
  text
    .split('\n')
    .map((line) => visible(line.replaceAll('\t', '    ')))
    .join('\n')

export const clip = (text: string, length: number) => (text.length > length ? `${text.slice(0, length - 1)}…` : text)

/** A word of a command, quoted for a shell. */
export const shellWord = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

export function spread(values: readonly number[]): { mean: number; deviation: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return { mean, deviation: values.length < 2 ? 0 : Math.sqrt(squares / (values.length - 1)) }
}

export const stepName = (place: string) => (/^\d+$/.test(place) ? `Step ${place}` : place === 'test' ? 'Held-out' : place)
export const when = (at: number) => new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
