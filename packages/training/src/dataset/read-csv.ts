import { CsvError, parse } from 'csv-parse/sync'
import type { NumberedRow } from './numbered-row.ts'
import type { ProblemList } from './problem-list.ts'

/** Reads rows below a header line (RFC 4180). Every value is text. Rows are numbered from the one below the header. */
export function* readCsv(text: string, problems: ProblemList): Iterable<NumberedRow> {
  let records: { record: Record<string, string>; info: { records: number; invalid_field_length: number } }[]
  try {
    records = parse(text, {
      columns: (header: string[]) => checkedHeader(header, problems),
      info: true,
      skip_empty_lines: true,
      skip_records_with_error: true,
      on_skip(error) {
        if (error) addCsvError(error, problems)
        return undefined
      },
    }) as unknown as typeof records
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    addCsvError(error, problems)
    return
  }
  for (const { record, info } of records) yield { row: record, number: info.records + info.invalid_field_length }
}

function checkedHeader(header: string[], problems: ProblemList): string[] {
  const names = header.map((name) => name.trim())
  for (const [index, name] of names.entries()) {
    if (name === '') problems.add(`column ${index + 1} has no name; name every column in the first line.`)
    else if (names.indexOf(name) !== index) problems.add('this column stands twice in the first line; rename one.', { column: name })
  }
  return names
}

function addCsvError(error: CsvError, problems: ProblemList): void {
  const cut = error.code === 'CSV_QUOTE_NOT_CLOSED' ? ' The file seems to be truncated.' : ''
  const row = 'lines' in error && typeof error['lines'] === 'number' ? Math.max(1, error['lines'] - 1) : null
  problems.add(`this is not CSV (${error.message}).${cut}`, { row })
}
