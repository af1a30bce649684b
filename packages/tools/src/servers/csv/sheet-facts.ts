import type { CellObject, WorkSheet } from '@e965/xlsx'

/** Facts of a sheet that its values do not hold, each with the address of its cells. */
export interface SheetFacts {
  readonly comments: readonly { readonly cell: string; readonly author: string; readonly text: string }[]
  readonly links: readonly { readonly cell: string; readonly target: string }[]
  /** Colours behind cells, as RRGGBB, with their cells: `A1:B2, C5`. */
  readonly fills: readonly { readonly color: string; readonly cells: string }[]
  /** Ranges that are one cell, as `A1:C2`. */
  readonly merged: readonly string[]
  /** Number of comments, links, merged ranges and ranges of one colour that were left out. */
  readonly omitted: number
}

/** Rows of a sheet, counted from 1. */
export interface SheetRows {
  readonly first: number
  readonly last: number
}

/** Most facts of each kind that an answer names, and most characters of one. */
const limits = { facts: 200, characters: 2_000 } as const

/** Facts about these rows of a sheet. */
export function factsOf(worksheet: WorkSheet, { first, last }: SheetRows): SheetFacts {
  const comments: SheetFacts['comments'][number][] = []
  const links: SheetFacts['links'][number][] = []
  const fills = new ColoredRanges()
  for (const { row, column, cell } of cellsOf(worksheet)) {
    if (row < first || row > last) continue
    const address = `${columnName(column)}${row}`
    for (const { a: author = '', t: text } of cell.c ?? [])
      comments.push({ cell: address, author, text: String(text ?? '').slice(0, limits.characters) })
    if (cell.l !== undefined) links.push({ cell: address, target: String(cell.l.Target ?? '').slice(0, limits.characters) })
    const color = colorOf(cell.s)
    if (color !== null) fills.add(color, column, row)
  }
  const merged = (worksheet['!merges'] ?? [])
    .filter(({ s, e }) => s.r < last && e.r + 1 >= first)
    .map(({ s, e }) => rangeName({ left: s.c, right: e.c, top: s.r + 1, bottom: e.r + 1 }))
  const colors = Map.groupBy(fills.ranges.slice(0, limits.facts), ({ color }) => color)
  return {
    comments: comments.slice(0, limits.facts),
    links: links.slice(0, limits.facts),
    fills: [...colors].map(([color, ranges]) => ({ color, cells: ranges.map(rangeName).join(', ') })),
    merged: merged.slice(0, limits.facts),
    omitted: [comments, links, fills.ranges, merged].reduce((sum, { length }) => sum + Math.max(0, length - limits.facts), 0),
  }
}

/** The cells of a sheet that has few of those that it may have. */
function* cellsOf(worksheet: WorkSheet): Generator<{ readonly row: number; readonly column: number; readonly cell: CellObject }> {
  const rows = (worksheet['!data'] ?? []) as (CellObject | undefined)[][]
  for (const row of Object.keys(rows).map(Number))
    for (const column of Object.keys(rows[row] ?? []).map(Number)) {
      const cell = rows[row]![column]
      if (cell) yield { row: row + 1, column, cell }
    }
}

interface CellRange {
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
}

interface ColoredRange extends CellRange {
  readonly color: string
  right: number
  bottom: number
}

/** Ranges of one colour, of cells that are added row by row and from left to right. */
class ColoredRanges {
  readonly #runs: ColoredRange[] = []

  add(color: string, column: number, row: number): void {
    const last = this.#runs.at(-1)
    if (last?.color === color && last.top === row && last.right === column - 1) last.right = column
    else this.#runs.push({ color, left: column, right: column, top: row, bottom: row })
  }

  /** The cells of rows, joined with those of the same columns in the row above. */
  get ranges(): readonly ColoredRange[] {
    const joined: ColoredRange[] = []
    const above = new Map<string, ColoredRange>()
    for (const run of this.#runs) {
      const place = `${run.color} ${run.left} ${run.right}`
      const upper = above.get(place)
      if (upper?.bottom === run.top - 1) upper.bottom = run.top
      else {
        const range = { ...run }
        above.set(place, range)
        joined.push(range)
      }
    }
    return joined
  }
}

function rangeName({ left, right, top, bottom }: CellRange): string {
  const start = `${columnName(left)}${top}`
  return left === right && top === bottom ? start : `${start}:${columnName(right)}${bottom}`
}

/** The name of a column, counted from 0: A to Z, AA and so on. */
export function columnName(index: number): string {
  const letter = String.fromCharCode(65 + (index % 26))
  return index < 26 ? letter : columnName(Math.floor(index / 26) - 1) + letter
}

interface CellStyle {
  readonly patternType?: string | undefined
  readonly fgColor?:
    | { readonly rgb?: string | undefined; readonly theme?: number | undefined; readonly tint?: number | undefined }
    | undefined
}

/** The colour behind a cell; null if it has none. */
function colorOf({ patternType, fgColor }: CellStyle = {}): string | null {
  if (fgColor === undefined || patternType === undefined || patternType === 'none') return null
  if (fgColor.rgb !== undefined) return fgColor.rgb.toUpperCase()
  // The library resolves all colours of a theme but the first, its background, which is white in all but a few.
  if (fgColor.theme === 0)
    return Math.round(255 * (1 + Math.min(0, fgColor.tint ?? 0)))
      .toString(16)
      .toUpperCase()
      .padStart(2, '0')
      .repeat(3)
  return 'colour of a palette'
}
