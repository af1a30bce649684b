import type { NumberedRow } from './numbered-row.ts'
import { plainValue } from './plain-value.ts'
import type { ProblemList } from './problem-list.ts'

/** Reads the rows of a Parquet file, with one row group in memory at a time. */
export async function* readParquet(path: string, problems: ProblemList): AsyncIterable<NumberedRow> {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import('hyparquet')
  const { compressors } = await import('hyparquet-compressors')
  try {
    const file = await asyncBufferFromFile(path)
    const metadata = await parquetMetadataAsync(file)
    let rowStart = 0
    for (const { num_rows } of metadata.row_groups) {
      const rowEnd = rowStart + Number(num_rows)
      const rows = await parquetReadObjects({ file, metadata, compressors, rowStart, rowEnd })
      for (const [index, row] of rows.entries()) yield { row: plainValue(row), number: rowStart + index + 1 }
      rowStart = rowEnd
    }
  } catch (error) {
    problems.add(`the file is not readable Parquet (${(error as Error).message}); it may be truncated, write it again.`)
  }
}
