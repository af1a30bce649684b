import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunManifest } from '@aworld-train/core'
import { closeReadDatabase, openRunDatabaseToRead } from './run-database.ts'
import { isOwned } from './run-lock.ts'
import { parseManifest } from './run-manifest.ts'
import { createRunQueries, type RunQueries } from './run-queries.ts'
import { toStoreError } from './store-error.ts'

/**
 * A run, live or finished, as anyone but its owner sees it. Nothing of it is changed, except that the last to close a run without an
 * owner removes its write-ahead log.
 */
export interface RunReader extends RunQueries {
  readonly path: string
  readonly manifest: RunManifest
}

/** Opens a run to read, for replay and export. Throws STORE_VERSION or STORE_CORRUPT. */
export function readRun(path: string): RunReader {
  const database = openRunDatabaseToRead(path)
  try {
    const manifest = parseManifest(path, readFileSync(join(path, 'manifest.json'), 'utf8'))
    const queries = createRunQueries(path, database, () => isOwned(path))
    return {
      ...queries,
      path,
      manifest,
      close() {
        queries.close()
        closeReadDatabase(path, database)
      },
    }
  } catch (error) {
    database.close()
    throw toStoreError(error, path)
  }
}
