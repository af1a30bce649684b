import { textWidth } from './text-width.ts'

export interface Screen {
  write(text: string): void
  /** All lines that were ever written, without white space at their ends. */
  lines(): string[]
  /** Breaks wider lines into several, like a terminal that becomes narrower. */
  resize(columns: number): void
}

/**
 * A terminal with the features that a display uses: it breaks lines at its width, moves up, returns and erases lines. Anything else throws.
 */
export function createScreen(columns: number): Screen {
  let width = columns
  let rows: string[][] = [[]]
  let [row, column] = [0, 0]

  function put(character: string): void {
    const cells = textWidth(character)
    if (cells === 0) return
    if (column + cells > width) lineFeed()
    const line = rows[row] as string[]
    while (line.length < column) line.push(' ')
    line.splice(column, cells, character, ...Array<string>(cells - 1).fill(''))
    column += cells
  }
  function lineFeed(): void {
    column = 0
    row += 1
    rows[row] ??= []
  }
  function control(parameter: number, name: string): void {
    if (name === 'A') row = Math.max(0, row - (parameter || 1))
    else if (name === 'K' && parameter === 2) rows[row] = []
    else if (name !== 'm') throw new Error(`The screen knows no control sequence ${parameter}${name}.`)
  }

  return {
    write(text) {
      for (const [, parameters, name, character = ''] of text.matchAll(/\u001b\[([\d;]*)([A-Za-z])|(.)/gsu)) {
        if (name !== undefined) control(Number(parameters), name)
        else if (character === '\r') column = 0
        else if (character === '\n') lineFeed()
        else put(character)
      }
    },
    lines: () => rows.map((cells) => cells.join('').trimEnd()),
    resize(next) {
      width = next
      const before = rows
      rows = []
      for (const [index, cells] of before.entries()) {
        const parts = Math.max(1, Math.ceil(cells.length / width))
        if (index === row) {
          const part = Math.min(parts - 1, Math.floor(column / width))
          ;[row, column] = [rows.length + part, column - part * width]
        }
        for (let part = 0; part < parts; part++) rows.push(cells.slice(part * width, (part + 1) * width))
      }
    },
  }
}
