import type { CellObject, WorkSheet } from '@e965/xlsx'
import { parse as parseCsv } from 'csv-parse/sync'
import { openArchive, toStoredArchive } from '../../documents/archive.ts'
import { decodeText } from '../../documents/decode-text.ts'
import { withoutPassword } from '../../documents/decrypt-office.ts'
import { expectKind } from '../../documents/file-kind.ts'
import { readWith, Unreadable } from '../../documents/unreadable.ts'
import { factsOf, type SheetFacts } from './sheet-facts.ts'
import { TableCollector, type TablePage, type TablePageOptions } from './table-page.ts'

export interface CsvOptions extends TablePageOptions {
  /** Name of the file in messages. */
  readonly file: string
  readonly password: string | null
  readonly encoding: string | null
  readonly delimiter: string | null
  /** Sheet of a workbook; null for the first. */
  readonly sheet: string | null
  /** Whether facts beside the values of a workbook are collected. */
  readonly facts: boolean
}

export interface CsvDocument extends TablePage {
  readonly encoding: string | null
  readonly delimiter: string | null
  readonly sheet: string | null
  readonly sheets: readonly string[]
  /** Those of the sheets that the workbook's program does not show. */
  readonly hiddenSheets: readonly string[]
  readonly facts: SheetFacts | null
  readonly notices: readonly string[]
}

/** One page of a delimited text or of a workbook's sheet. */
export default async function parse(source: Buffer, options: CsvOptions): Promise<CsvDocument> {
  const bytes = await withoutPassword(options.file, source, options.password)
  const kind = expectKind(options.file, bytes, ['text', 'xlsx'])
  return kind === 'xlsx' ? parseWorkbook(bytes, options) : parseText(bytes, options)
}

async function parseText(bytes: Buffer, options: CsvOptions): Promise<CsvDocument> {
  const { text, encoding, notices } = await decodeText(options.file, bytes, options.encoding)
  const delimiter = options.delimiter === '\\t' ? '\t' : (options.delimiter ?? detectDelimiter(text))
  const facts = { encoding, delimiter, sheet: null, sheets: [], hiddenSheets: [], facts: null }
  try {
    return { ...collectRecords(text, delimiter, '"', options), ...facts, notices }
  } catch (error) {
    if ((error as { code?: string }).code !== 'CSV_QUOTE_NOT_CLOSED') throw error
    const unquoted = collectRecords(text, delimiter, false, options)
    return { ...unquoted, ...facts, notices: [...notices, 'A quotation mark is never closed, so quotation marks are read as text.'] }
  }
}

function collectRecords(text: string, delimiter: string, quote: string | false, options: CsvOptions): TablePage {
  const collector = new TableCollector(options)
  parseCsv(text, {
    delimiter,
    quote,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    on_record: (record: string[]) => {
      collector.add(record)
      return null
    },
  })
  return collector.page(options.file)
}

const delimiters = [',', '\t', ';', '|'] as const

/** Finds the delimiter that splits most of the first lines into equally many cells. */
function detectDelimiter(text: string): string {
  const sample = text.slice(0, 64 * 1024).replace(/"[^"]*"/g, '')
  const lines = sample.split(/\r\n|\r|\n/, 50).filter((line) => line !== '')
  const agreement = (delimiter: string) => {
    const counts = lines.map((line) => line.split(delimiter).length - 1)
    return counts[0] === 0 ? 0 : counts.filter((count) => count === counts[0]).length + Math.min(0.9, counts[0]! / 100)
  }
  return delimiters.reduce((best, one) => (agreement(one) > agreement(best) ? one : best))
}

async function parseWorkbook(bytes: Buffer, options: CsvOptions): Promise<CsvDocument> {
  const { parts } = openArchive(options.file, bytes)
  // The library is loaded here because its code is large and most tables are text.
  const { read } = await import('@e965/xlsx')
  const workbook = await readWith(options.file, 'XLSX', () =>
    read(toStoredArchive(new Map([...parts].map(([name, part]) => [name, withoutLongReferences(part)]))), {
      type: 'buffer',
      dense: true,
      nodim: true,
      cellDates: true,
      UTC: true,
      sheetStubs: true,
      cellNF: true,
      cellStyles: options.facts,
      sheets: options.sheet ?? 0,
    }),
  )
  const sheet = options.sheet ?? workbook.SheetNames[0]
  if (sheet === undefined) throw new Unreadable(`${options.file} has no sheets.`)
  if (!workbook.SheetNames.includes(sheet)) {
    throw new Unreadable(
      `${options.file} has no sheet "${sheet.slice(0, 100)}"; it has ${workbook.SheetNames.map((name) => `"${name}"`)
        .join(', ')
        .slice(0, 1_000)}.`,
    )
  }
  const collector = new TableCollector(options)
  const worksheet = workbook.Sheets[sheet]
  for (const { number, cells } of worksheet === undefined ? [] : rowsOf(worksheet)) collector.add(cells, number)
  const page = collector.page(options.file)
  const facts =
    worksheet === undefined || !options.facts ? null : await readWith(options.file, 'XLSX', () => factsOf(worksheet, page.sheetRows))
  return {
    ...page,
    encoding: null,
    delimiter: null,
    sheet,
    sheets: workbook.SheetNames,
    hiddenSheets: workbook.SheetNames.filter((_, index) => (workbook.Workbook?.Sheets?.[index]?.Hidden ?? 0) !== 0),
    facts,
    notices: worksheet === undefined ? [`Sheet "${sheet}" is a chart or is damaged; it has no cells.`] : [],
  }
}

/**
 * Replaces references to characters above U+FFFF in a part of a workbook by these characters in UTF-8, because the library
 * cuts their numbers to 16 bits.
 */
function withoutLongReferences(part: Buffer): Buffer {
  if (!part.includes('&#')) return part
  const text = part.toString('latin1').replace(/&#(?:x([\da-f]+)|(\d+));/gi, (reference, hexadecimal?: string, decimal?: string) => {
    const code = hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16)
    if (code <= 0xffff) return reference
    return Buffer.from(code > 0x10ffff ? '\ufffd' : String.fromCodePoint(code)).toString('latin1')
  })
  return Buffer.from(text, 'latin1')
}

/** Yields the rows that have a value, with their numbers. A sheet may claim a million rows and have cells in two. */
function* rowsOf(worksheet: WorkSheet): Generator<{ readonly number: number; readonly cells: string[] }> {
  const rows = (worksheet['!data'] ?? []) as (CellObject | undefined)[][]
  for (const index of Object.keys(rows)) {
    const row = Array.from(rows[Number(index)] ?? [], toText)
    const length = row.findLastIndex((cell) => cell !== '') + 1
    if (length > 0) yield { number: Number(index) + 1, cells: row.slice(0, length) }
  }
}

/** The value that the workbook's program saved. Formulas are not computed here; one without a value is shown itself. */
function toText(cell: CellObject | undefined): string {
  if (cell === undefined) return ''
  if (cell.t === 'e') return String(cell.w ?? '#ERROR')
  if (cell.t === 'z' || cell.v === undefined) return cell.f === undefined ? '' : `=${cell.f}`
  if (cell.v instanceof Date) {
    // A duration, such as 30:15, is no date.
    if (/\[[hms]+\]/i.test(String(cell.z)) && cell.w !== undefined) return cell.w
    if (Number.isNaN(cell.v.getTime())) return String(cell.w ?? '')
    const [day, time] = cell.v.toISOString().split(/T|\.\d+Z/) as [string, string]
    // Excel stores a time of day on the day before its first day.
    if (day < '1900') return time
    return time === '00:00:00' ? day : `${day} ${time}`
  }
  return String(cell.v)
}
