import type { DatabaseSync } from 'node:sqlite'
import { type SegmentPosition, segmentSizes } from './segment-writer.ts'
import { corrupt } from './store-error.ts'

/** End of the last tokens a row points at. Rejects with STORE_CORRUPT when a segment is shorter than its rows say. */
export async function recordedEnd(path: string, database: DatabaseSync, directory: string): Promise<SegmentPosition> {
  const rows = database
    .prepare(
      'SELECT segment, max(byte_offset + (suffix_length + 2 * completion_length) * 4) AS bytes FROM turns GROUP BY segment ORDER BY segment',
    )
    .all() as { segment: number; bytes: number }[]
  const sizes = await segmentSizes(directory)
  for (const { segment, bytes } of rows) {
    const size = sizes.get(segment)
    if (size === undefined || size < bytes) {
      throw corrupt(path, `segment ${segment} has ${size ?? 'no'} bytes, its turns need ${bytes}`)
    }
  }
  const last = rows.at(-1)
  return { segment: last?.segment ?? 1, offset: last?.bytes ?? 0 }
}
