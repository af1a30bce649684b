import type { DatabaseSync } from 'node:sqlite'
import type { SegmentPosition } from './segment-writer.ts'

/** End of the last tokens that a row points at. */
export function recordedEnd(database: DatabaseSync): SegmentPosition {
  const last = database
    .prepare(
      'SELECT segment, max(byte_offset + (suffix_length + 2 * completion_length) * 4) AS offset FROM turns WHERE segment = (SELECT max(segment) FROM turns) AND segment > 0 GROUP BY segment',
    )
    .get() as unknown as SegmentPosition | undefined
  return last ? { ...last } : { segment: 1, offset: 0 }
}
