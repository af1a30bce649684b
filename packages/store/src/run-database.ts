import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { TrainError } from '@aworld-train/core'
import { applicationId, schema, storeVersion } from './schema.ts'
import { corrupt, toStoreError } from './store-error.ts'

/** Opens `run.db` to write, and creates it if missing. A database that is refused is left as it is. */
export function openRunDatabase(path: string): DatabaseSync {
  const file = join(path, 'run.db')
  return opened(path, () => {
    const database = new DatabaseSync(file, { timeout: 5000 })
    return guarded(database, () => {
      const isNew = pragma(database, 'user_version') === 0 && pragma(database, 'application_id') === 0 && isEmpty(database)
      if (isNew) database.exec(`BEGIN IMMEDIATE;${schema}COMMIT`)
      else {
        checkFormat(path, database)
        checkPages(path, database)
      }
    })
  })
}

/** Opens `run.db` once more, to write it from another thread of the process that owns it and has checked it. */
export function openRunDatabaseAgain(path: string): DatabaseSync {
  return opened(path, () => new DatabaseSync(join(path, 'run.db'), { timeout: 5000 }))
}

/**
 * Turns the write-ahead log on, before the first write. Commits are `synchronous=NORMAL`, so a killed process loses none of them. Against a
 * power cut the writer also syncs the log, for results, steps and state (see createCommitQueue).
 */
export function startWriteAheadLog(database: DatabaseSync): void {
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4000; PRAGMA foreign_keys = ON')
  database.exec('BEGIN IMMEDIATE; COMMIT')
}

/**
 * Closes a database after writing. Without a write-ahead log, a finished run can be read where nothing may be written. If somebody else has
 * the database open, the log is only emptied, and the last reader to close removes it.
 */
export function closeWrittenDatabase(database: DatabaseSync, lastWrite: () => void): void {
  try {
    lastWrite()
  } catch {
    // This fails on a full disk, for example. Readers see the same by the missing owner.
  }
  try {
    database.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)')
    endWriteAheadLog(database)
  } catch {
    // The log stays until a later close. Its content is as safe as the database.
  } finally {
    database.close()
  }
}

/** Closes a database that was read. If nobody else has the run open, its log is removed. */
export function closeReadDatabase(path: string, database: DatabaseSync): void {
  database.close()
  if (!existsSync(join(path, 'run.db-wal'))) return
  let last: DatabaseSync | undefined
  try {
    last = new DatabaseSync(join(path, 'run.db'))
    endWriteAheadLog(last)
  } catch {
    // Its owner or another reader is at work, or nothing may be written here.
  } finally {
    last?.close()
  }
}

/** Ends the write-ahead log. Throws at once while another connection is open. */
function endWriteAheadLog(database: DatabaseSync): void {
  database.exec('PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE')
}

/** Opens `run.db` to read, with or without its owner. */
export function openRunDatabaseToRead(path: string): DatabaseSync {
  const file = join(path, 'run.db')
  if (!existsSync(file)) {
    throw new TrainError('STORE_CORRUPT', `${path} is not a run: it has no run.db. Name a folder below runs/.`)
  }
  return opened(path, () => {
    const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
    return guarded(database, () => checkFormat(path, database))
  })
}

function opened(path: string, open: () => DatabaseSync): DatabaseSync {
  try {
    return open()
  } catch (error) {
    throw toStoreError(error, path)
  }
}

function guarded(database: DatabaseSync, prepare: () => void): DatabaseSync {
  try {
    prepare()
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function checkFormat(path: string, database: DatabaseSync): void {
  const version = pragma(database, 'user_version')
  if (pragma(database, 'application_id') !== applicationId) throw corrupt(path, 'its run.db is not the database of a run')
  if (version !== storeVersion) throw anotherVersion(path, version)
}

/** Checks the whole file, as its owner does before it goes on. A reader meets damage only where it reads. */
function checkPages(path: string, database: DatabaseSync): void {
  const first = database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string }
  if (first.quick_check !== 'ok') throw corrupt(path, first.quick_check)
}

/** The error for a run of another format. */
export function anotherVersion(path: string, version: unknown): TrainError {
  return new TrainError(
    'STORE_VERSION',
    `Run ${path} has format ${String(version)}, this version reads ${storeVersion}. Open it with the version that made it, or start a new run with --new.`,
    { details: { path, version } },
  )
}

function pragma(database: DatabaseSync, name: string): number {
  return Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0] as number
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined
}
