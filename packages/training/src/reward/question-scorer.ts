import { parsePythonFloat, removeSpace } from './python-text.ts'

/** Parses the number in a text, without `$`, `%` and `,`; infinity if there is none (AWorld's normalize_number_str). */
export function normalizeNumberStr(numberStr: string): number {
  return parsePythonFloat(numberStr.replace(/[$%,]/g, '')) ?? Number.POSITIVE_INFINITY
}

/** Splits a text at any of the characters (AWorld's split_string). */
export function splitString(text: string, charList: readonly string[] = [',', ';']): string[] {
  return text.split(new RegExp(`[${charList.join('')}]`))
}

/** Lower-cases a text and removes white space and, by default, ASCII punctuation (AWorld's normalize_str). */
export function normalizeStr(inputStr: string, removePunct = true): string {
  const lower = removeSpace(inputStr).toLowerCase()
  return removePunct ? lower.replace(/[!-/:-@[-`{-~]/g, '') : lower
}

/**
 * Whether an answer is right by GAIA's rules: as a number if the truth is one, element by element if it has commas or semicolons, else as
 * text. Throws TypeError for a truth that is neither text nor a number.
 */
export function questionScorer(modelAnswer: string | null, groundTruth: unknown): boolean {
  const answer = modelAnswer ?? 'None'
  const number = toFloat(groundTruth)
  if (number !== null) return normalizeNumberStr(answer) === number
  const truth = groundTruth as string
  if (!/[,;]/.test(truth)) return normalizeStr(answer) === normalizeStr(truth)
  const truthElements = splitString(truth)
  const answerElements = splitString(answer)
  return truthElements.length === answerElements.length && truthElements.every((element, i) => isSameElement(answerElements[i]!, element))
}

function isSameElement(answer: string, truth: string): boolean {
  const number = parsePythonFloat(truth)
  return number === null ? normalizeStr(answer, false) === normalizeStr(truth, false) : normalizeNumberStr(answer) === number
}

/** Python's `float(value)`, with `null` for text that is no number. */
function toFloat(value: unknown): number | null {
  if (typeof value === 'string') return parsePythonFloat(value)
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return Number(value)
  throw new TypeError(`The ground truth is ${value === null ? 'null' : `a value of type ${typeof value}`}; it must be text or a number.`)
}
