import type { NumberedRow } from './numbered-row.ts'
import type { ProblemList } from './problem-list.ts'

/** Reads one JSON value a line. Empty lines are skipped, and the number of a row is that of its line. */
export function* readJsonLines(text: string, problems: ProblemList): Iterable<NumberedRow> {
  const lines = text.split('\n')
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue
    const number = index + 1
    try {
      yield { row: parseJson(line), number }
    } catch (error) {
      const isLast = lines.slice(number).every((rest) => rest.trim() === '')
      const cut = isLast && !text.endsWith('\n') ? ' The file ends here: it seems to be truncated.' : ''
      problems.add(`this line is not JSON (${(error as Error).message}).${cut}`, { row: number })
    }
  }
}

/** Reads an array of rows, or an object with one such array (`data`, `rows`, `train`, …). */
export function* readJsonRows(text: string, problems: ProblemList): Iterable<NumberedRow> {
  let value: unknown
  try {
    value = parseJson(text)
  } catch (error) {
    const { message } = error as Error
    const cut = /end of|unterminated/i.test(message) ? ' The file seems to be truncated.' : ''
    problems.add(`the file is not JSON (${message}).${cut}`)
    return
  }
  const rows = Array.isArray(value) ? value : onlyArrayOf(value)
  if (!rows) {
    problems.add('the file holds no list of rows; put the rows in a JSON array.')
    return
  }
  for (const [index, row] of rows.entries()) yield { row, number: index + 1 }
}

function onlyArrayOf(value: unknown): unknown[] | null {
  if (typeof value !== 'object' || value === null) return null
  const arrays = Object.values(value).filter(Array.isArray)
  return arrays.length === 1 ? arrays[0]! : null
}

/** Parses JSON. An integer too large for a double stays exact, as text. */
function parseJson(text: string): unknown {
  return JSON.parse(text, (_key, value, context?: { source?: string }) =>
    typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? '')
      ? context!.source
      : value,
  )
}
