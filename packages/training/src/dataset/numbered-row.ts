/** A row as its file has it. */
export interface NumberedRow {
  readonly row: unknown
  /** 1-based. */
  readonly number: number
}
