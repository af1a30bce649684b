import { refuseBehindEnd } from '../../documents/page.ts'
import type { SheetRows } from './sheet-facts.ts'

export interface TablePageOptions {
  readonly offset: number
  readonly maxRows: number
  readonly columnOffset: number
  readonly includeStatistics: boolean
  readonly histograms: boolean
}

export interface ColumnStatistics {
  readonly column: string
  readonly filled: number
  readonly empty: number
  /** Statistics of a column in which every filled cell is a number. */
  readonly numbers: {
    readonly mean: number
    readonly standardDeviation: number | null
    readonly minimum: number
    readonly quartile1: number
    readonly median: number
    readonly quartile3: number
    readonly maximum: number
    readonly histogram: readonly { readonly from: number; readonly to: number; readonly rows: number }[]
  } | null
  /** Statistics of any other column. */
  readonly texts: { readonly distinct: number; readonly mostFrequent: string; readonly occurrences: number } | null
}

export interface TablePage {
  readonly columns: readonly string[]
  readonly columnOffset: number
  readonly totalColumns: number
  readonly nextColumnOffset: number | null
  readonly rows: readonly (readonly string[])[]
  /** Numbers of the row that names the columns and of `rows` in the sheet; null for a text. */
  readonly rowNumbers: { readonly heading: number; readonly rows: readonly number[] } | null
  /** Rows of the sheet from the first of this page to the last before the next page. */
  readonly sheetRows: SheetRows
  readonly offset: number
  readonly total: number
  readonly nextOffset: number | null
  readonly statistics: readonly ColumnStatistics[]
}

/** Limits of one answer: columns, characters of a page, characters of a cell, distinct values and bins. */
const tableLimits = { columns: 100, characters: 40_000, cell: 2_000, distinct: 10_000, bins: 10 } as const

/** Collects one page of a table, and statistics over all its rows, as rows pass by. The first row names the columns. */
export class TableCollector {
  readonly #options: TablePageOptions
  #columns: string[] | null = null
  #totalColumns = 0
  #total = 0
  #characters = 0
  #isPageFull = false
  #headingNumber: number | null = null
  readonly #rowNumbers: number[] = []
  #lastNumber = Number.POSITIVE_INFINITY
  readonly #rows: string[][] = []
  readonly #collectors: ColumnCollector[] = []

  constructor(options: TablePageOptions) {
    this.#options = options
  }

  /** Adds a row; one of a sheet comes with its number, counted from 1. */
  add(row: readonly string[], number: number | null = null): void {
    this.#totalColumns = Math.max(this.#totalColumns, row.length)
    const start = this.#options.columnOffset
    const cells = row.slice(start, start + tableLimits.columns)
    if (this.#columns === null) {
      this.#columns = cells.map(shorten)
      this.#headingNumber = number
      return
    }
    const index = this.#total
    this.#total += 1
    if (this.#isPageFull && number !== null) this.#lastNumber = Math.min(this.#lastNumber, number - 1)
    if (this.#options.includeStatistics || this.#options.histograms) this.#count(cells)
    if (index < this.#options.offset || this.#isPageFull) return
    const shown = cells.map(shorten)
    this.#characters += shown.reduce((sum, cell) => sum + cell.length + 3, 0)
    if (this.#rows.length > 0 && this.#characters > tableLimits.characters) {
      this.#isPageFull = true
      if (number !== null) this.#lastNumber = number - 1
      return
    }
    this.#rows.push(shown)
    if (number !== null) this.#rowNumbers.push(number)
    if (this.#rows.length >= this.#options.maxRows) this.#isPageFull = true
  }

  page(file: string): TablePage {
    const { offset, columnOffset } = this.#options
    refuseBehindEnd(file, offset, this.#total, 'rows')
    refuseBehindEnd(file, columnOffset, this.#totalColumns, 'columns')
    const width = Math.min(tableLimits.columns, this.#totalColumns - columnOffset)
    const columns = Array.from({ length: width }, (_, index) => this.#columns?.[index] || `column ${columnOffset + index + 1}`)
    const nextColumn = columnOffset + width
    const nextRow = offset + this.#rows.length
    return {
      columns,
      columnOffset,
      totalColumns: this.#totalColumns,
      nextColumnOffset: nextColumn < this.#totalColumns ? nextColumn : null,
      rows: this.#rows,
      rowNumbers: this.#headingNumber === null ? null : { heading: this.#headingNumber, rows: this.#rowNumbers },
      sheetRows: { first: offset === 0 ? 1 : (this.#rowNumbers[0] ?? 1), last: this.#lastNumber },
      offset,
      total: this.#total,
      nextOffset: nextRow < this.#total ? nextRow : null,
      statistics: this.#collectors
        .slice(0, width)
        .map((one, index) => one.statistics(columns[index]!, this.#total, this.#options.histograms)),
    }
  }

  #count(cells: readonly string[]): void {
    for (const [index, cell] of cells.entries()) {
      this.#collectors[index] ??= new ColumnCollector()
      this.#collectors[index].add(cell.trim())
    }
  }
}

function shorten(cell: string): string {
  if (cell.length <= tableLimits.cell) return cell
  return `${cell.slice(0, tableLimits.cell)}… (${cell.length - tableLimits.cell} more characters)`
}

class ColumnCollector {
  #filled = 0
  #isNumeric = true
  #numbers: number[] = []
  readonly #texts = new Map<string, number>()

  add(cell: string): void {
    if (cell === '') return
    this.#filled += 1
    if (this.#isNumeric && isNumber(cell)) this.#numbers.push(Number(cell))
    else {
      this.#isNumeric = false
      this.#numbers = []
    }
    const key = cell.slice(0, 200)
    const count = this.#texts.get(key)
    if (count !== undefined || this.#texts.size < tableLimits.distinct) this.#texts.set(key, (count ?? 0) + 1)
  }

  statistics(column: string, total: number, histograms: boolean): ColumnStatistics {
    const facts = { column, filled: this.#filled, empty: total - this.#filled }
    if (this.#filled === 0) return { ...facts, numbers: null, texts: null }
    if (this.#isNumeric) return { ...facts, numbers: describeNumbers(this.#numbers, histograms), texts: null }
    const [mostFrequent, occurrences] = [...this.#texts].reduce((best, one) => (one[1] > best[1] ? one : best))
    return { ...facts, numbers: null, texts: { distinct: this.#texts.size, mostFrequent, occurrences } }
  }
}

function isNumber(cell: string): boolean {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i.test(cell) && Number.isFinite(Number(cell))
}

function describeNumbers(numbers: readonly number[], histograms: boolean): NonNullable<ColumnStatistics['numbers']> {
  const sorted = Float64Array.from(numbers).sort()
  const minimum = sorted[0]!
  const maximum = sorted.at(-1)!
  const mean = sorted.reduce((sum, value) => sum + value / sorted.length, 0)
  const squares = sorted.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return {
    mean: round(mean),
    standardDeviation: sorted.length < 2 ? null : round(Math.sqrt(squares / (sorted.length - 1))),
    minimum,
    quartile1: round(quantile(sorted, 0.25)),
    median: round(quantile(sorted, 0.5)),
    quartile3: round(quantile(sorted, 0.75)),
    maximum,
    histogram: histograms ? histogram(sorted, minimum, maximum) : [],
  }
}

function quantile(sorted: Float64Array, share: number): number {
  const position = (sorted.length - 1) * share
  const below = sorted[Math.floor(position)]!
  return below + (sorted[Math.ceil(position)]! - below) * (position - Math.floor(position))
}

function histogram(sorted: Float64Array, minimum: number, maximum: number) {
  if (minimum === maximum) return [{ from: minimum, to: maximum, rows: sorted.length }]
  const width = (maximum - minimum) / tableLimits.bins
  if (!Number.isFinite(width)) return []
  const counts = Array<number>(tableLimits.bins).fill(0)
  for (const value of sorted) counts[Math.min(tableLimits.bins - 1, Math.floor((value - minimum) / width))]! += 1
  return counts.map((rows, bin) => ({ from: round(minimum + bin * width), to: round(minimum + (bin + 1) * width), rows }))
}

/** Rounds to six decimals, a small number to six digits. A number too large for JSON becomes the largest. */
function round(value: number): number {
  const rounded = Number(Math.abs(value) < 1 ? value.toPrecision(6) : value.toFixed(6))
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, rounded))
}
