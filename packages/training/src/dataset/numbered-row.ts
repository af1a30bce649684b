/** A row and its place in the file. */
export interface NumberedRow {
  readonly row: unknown
  /** 1-based. */
  readonly number: number
}
