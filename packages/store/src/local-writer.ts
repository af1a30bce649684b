import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { createCommitQueue } from './commit-queue.ts'
import { createEncodedWrites, type EncodedWrites } from './encoded-writes.ts'
import { recordedEnd } from './recorded-end.ts'
import { startWriteAheadLog } from './run-database.ts'
import { createRunQueries } from './run-queries.ts'
import { createSegmentWriter } from './segment-writer.ts'
import { toStoreError } from './store-error.ts'

export interface LocalWriterOptions {
  readonly path: string
  /** The caller closes it. */
  readonly database: DatabaseSync
  readonly batchMs: number
}

/** The one writer of a run. */
export interface RunWriter {
  readonly writes: EncodedWrites
  /** Refuses later writes, and resolves when the earlier ones are done. */
  close(): Promise<void>
}

export async function createLocalWriter({ path, database, batchMs }: LocalWriterOptions): Promise<RunWriter> {
  const directory = join(path, 'segments')
  const end = recordedEnd(database)
  startWriteAheadLog(database)
  const segments = await createSegmentWriter({ directory, end })
  try {
    const onError = (error: unknown) => toStoreError(error, path)
    const log = await open(join(path, 'run.db-wal'), 'r+')
    const gather = () => (batchMs > 0 ? sleep(batchMs) : nextTurn())
    const queue = createCommitQueue({ database, segments, log, gather, onError })
    const queries = createRunQueries(path, database)
    return {
      writes: createEncodedWrites(database, queue, queries),
      async close() {
        await queue.close()
        queries.close()
        await segments.close()
      },
    }
  } catch (error) {
    await segments.close()
    throw error
  }
}
