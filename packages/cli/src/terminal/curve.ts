/** Columns that the axis of a curve takes. */
export const curveMargin = 8

/** A line chart of `values` in text, with `height` rows, at most `width` columns, and `min` and `max` on its axis. */
export function renderCurve(values: readonly number[], { width = 60, height = 8, min = 0, max = 1 }: CurveOptions = {}): string {
  if (values.length === 0) return ''
  const columns = resample(values, Math.min(width, values.length))
  const rows: string[] = []
  for (let row = height - 1; row >= 0; row--) {
    const cells = columns.map((value) => cell(((value - min) / (max - min || 1)) * height - row))
    const label = row === height - 1 ? max.toFixed(2) : row === 0 ? min.toFixed(2) : ''
    rows.push(`${label.padStart(6)} ${row === 0 || row === height - 1 ? '┤' : '│'}${cells.join('')}`)
  }
  rows.push(`${' '.repeat(7)}└${'─'.repeat(columns.length)}`)
  return rows.join('\n')
}

/** The last `width` values as one line of eighths between 0 and 1. */
export function renderSparkline(values: readonly number[], width = 20): string {
  return values.slice(-width).map(cell).join('')
}

export interface CurveOptions {
  readonly width?: number
  readonly height?: number
  readonly min?: number
  readonly max?: number
}

const eighths = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** One character cell, filled to `fraction` of its height. */
function cell(fraction: number): string {
  const step = Math.round(Math.min(1, Math.max(0, Number.isFinite(fraction) ? fraction : 0)) * 8)
  return eighths[step] as string
}

/** Means of equal sections, so that a long curve keeps its shape. */
function resample(values: readonly number[], columns: number): number[] {
  return Array.from({ length: columns }, (_, column) => {
    const from = Math.floor((column * values.length) / columns)
    const to = Math.max(from + 1, Math.floor(((column + 1) * values.length) / columns))
    const stretch = values.slice(from, to)
    return stretch.reduce((sum, value) => sum + value, 0) / stretch.length
  })
}
