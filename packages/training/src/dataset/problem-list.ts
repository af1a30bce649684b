import type { DatasetProblem } from './dataset-types.ts'

export interface ProblemPlace {
  readonly row?: number | null | undefined
  readonly column?: string | null | undefined
}

/** Collects at most `limit` problems of one source, and counts the rest. */
export interface ProblemList {
  readonly file: string
  /** The same list for another file of the source. */
  of(file: string): ProblemList
  add(message: string, place?: ProblemPlace): void
  /** Adds a sentence about something that is left out on purpose. */
  leaveOut(message: string): void
  toArray(): DatasetProblem[]
  leftOut(): readonly string[]
}

export function createProblemList(file: string, limit: number): ProblemList {
  const problems: DatasetProblem[] = []
  const leftOut: string[] = []
  let more = 0
  const listOf = (file: string): ProblemList => ({
    file,
    of: listOf,
    add(message, { row = null, column = null } = {}) {
      if (problems.length >= limit) {
        more++
        return
      }
      const where = [file, row === null ? '' : `row ${row}`, column === null ? '' : `column "${column}"`].filter(Boolean).join(', ')
      problems.push({ file, row, column, message: `${where}: ${message}` })
    },
    leaveOut: (message) => void leftOut.push(`${file}: ${message}`),
    leftOut: () => leftOut,
    toArray: () =>
      more === 0 ? problems : [...problems, { file, row: null, column: null, message: `${file}: and ${more} more problems of this kind.` }],
  })
  return listOf(file)
}
