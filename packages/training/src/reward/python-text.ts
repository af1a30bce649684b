const wideSpace = '\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'
/** The white space of Python's `str.isspace` and `\s`. JavaScript's lack U+001C to U+001F and U+0085, and add U+FEFF. */
const space = `\\t-\\r\\x1c-\\x20${wideSpace}`
/** The white space that `float` strips. It keeps U+001C to U+001F. */
const floatSpace = `\\t-\\r ${wideSpace}`
const anySpace = new RegExp(`[${space}]`, 'g')
const outerSpace = new RegExp(`^[${space}]+|[${space}]+$`, 'g')
const outerFloatSpace = new RegExp(`^[${floatSpace}]+|[${floatSpace}]+$`, 'g')

/** Python's `re.sub(r'\s', '', text)`. */
export function removeSpace(text: string): string {
  return text.replace(anySpace, '')
}

/** Python's `text.strip()`. */
export function strip(text: string): string {
  return text.replace(outerSpace, '')
}

const digits = '[0-9](?:_?[0-9])*'
const decimal = new RegExp(`^[+-]?(?:${digits}\\.?(?:${digits})?|\\.${digits})(?:[eE][+-]?${digits})?$`)

/**
 * Python's `float(text)`, with `null` for a ValueError: outer white space, digits of any script, `_` between digits,
 * `inf`, `infinity` and `nan` in any case; no hexadecimal (https://docs.python.org/3/library/functions.html#float).
 */
export function parsePythonFloat(text: string): number | null {
  const plain = text.replace(outerFloatSpace, '').replace(/[\u0080-\u{10ffff}]/gu, asciiDigit)
  const named = /^([+-]?)(inf|infinity|nan)$/i.exec(plain)
  if (named) {
    if (named[2]!.toLowerCase() === 'nan') return Number.NaN
    return named[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  }
  return decimal.test(plain) ? Number(plain.replaceAll('_', '')) : null
}

/** Converts a decimal digit of another script to ASCII. Such digits are in runs of ten, zero first. */
function asciiDigit(character: string): string {
  let point = character.codePointAt(0)!
  if (!isDecimalDigit(point)) return character
  let value = 0
  while (isDecimalDigit(--point)) value++
  return String(value % 10)
}

const isDecimalDigit = (point: number) => /\p{Nd}/u.test(String.fromCodePoint(point))
