import { fitText, textWidth } from './text-width.ts'

/** The last line of a terminal, redrawn in place. Other output is printed above it. */
export interface LiveLine {
  /** Replaces the line. `''` leaves none. */
  draw(text: string): void
  print(text: string): void
  /** Leaves the line on the screen. */
  keep(): void
  /** Most columns of a line. */
  columns(): number
}

/** Whether lines can be redrawn. That takes a terminal that can move its cursor and whose output does not go to a log. */
export function isLiveTerminal({ isTTY }: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return isTTY === true && env['TERM'] !== 'dumb' && !env['CI']
}

export function createLiveLine(stream: NodeJS.WriteStream): LiveLine {
  let line = ''
  const width = () => stream.columns || 80
  // Terminals break a line as soon as its last column is written.
  const columns = () => width() - 1

  /**
   * Erases the line. A terminal that became narrower has broken it into several, and each is erased by itself, because a terminal such as
   * tmux keeps text in its history that is erased from the first cell of the screen to its end.
   */
  function erase(): string {
    if (line === '') return ''
    const above = Math.ceil(textWidth(line) / width()) - 1
    return `\r\u001b[2K${'\u001b[A\u001b[2K'.repeat(above)}`
  }

  return {
    columns,
    draw(text) {
      const start = erase()
      line = fitText(text, columns())
      if (start !== '' || line !== '') stream.write(start + line)
    },
    print(text) {
      stream.write(`${erase()}${text}\n${line}`)
    },
    keep() {
      if (line !== '') stream.write('\n')
      line = ''
    },
  }
}
