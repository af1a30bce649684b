import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { TrainError } from '@aworld-train/protocol'
import { corrupt, toStoreError } from './store-error.ts'

export const storeVersion = 1
/** `AWTR`: tells a run from any other SQLite file. */
const applicationId = 0x41575452

/*
 * `rollouts.attempt` is the fence: a write names its attempt and must find it here. The primary keys of `episodes`
 * and `trained` make a second result and a second training impossible.
 * Against a power cut, `episodes`, `steps`, `trained` and `state` are as strong as `synchronous=FULL`; of `rollouts` and
 * `turns` the last moments may be gone, which a new attempt makes again.
 * A `turns` row points at `segment`.`byte_offset`: suffix_length int32 ids, completion_length int32 ids, completion_length float32.
 */
const schema = `
CREATE TABLE rollouts(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, split TEXT NOT NULL,
  status TEXT NOT NULL CHECK(status IN ('running', 'done')), attempt INTEGER NOT NULL, request TEXT NOT NULL
) STRICT;
CREATE INDEX rollouts_split ON rollouts(split, id);
CREATE TABLE turns(
  rollout INTEGER NOT NULL REFERENCES rollouts(id), attempt INTEGER NOT NULL, agent TEXT NOT NULL, turn INTEGER NOT NULL,
  body TEXT NOT NULL, prefix_length INTEGER NOT NULL, suffix_length INTEGER NOT NULL, completion_length INTEGER NOT NULL,
  segment INTEGER NOT NULL, byte_offset INTEGER NOT NULL, crc32 INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX turns_key ON turns(rollout, attempt, agent, turn);
CREATE TABLE episodes(rollout INTEGER PRIMARY KEY REFERENCES rollouts(id), body TEXT NOT NULL) STRICT;
CREATE TABLE steps(
  step INTEGER PRIMARY KEY, weight_version INTEGER NOT NULL, checkpoint TEXT, metrics TEXT NOT NULL, committed_at INTEGER NOT NULL
) STRICT;
CREATE TABLE trained(
  rollout INTEGER PRIMARY KEY REFERENCES rollouts(id), step INTEGER NOT NULL REFERENCES steps(step), position INTEGER NOT NULL
) STRICT;
CREATE INDEX trained_step ON trained(step, position);
CREATE TABLE state(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
PRAGMA application_id = ${applicationId};
PRAGMA user_version = ${storeVersion};
`

/** Opens `run.db` to write, making it when missing. One that is refused is left as it is. */
export function openRunDatabase(path: string): DatabaseSync {
  const file = join(path, 'run.db')
  return opened(path, () => {
    const database = new DatabaseSync(file, { timeout: 5000 })
    return guarded(database, () => {
      const isNew = pragma(database, 'user_version') === 0 && pragma(database, 'application_id') === 0 && isEmpty(database)
      if (isNew) database.exec(`BEGIN IMMEDIATE;${schema}COMMIT`)
      else check(path, database)
    })
  })
}

/** Opens `run.db` once more, to write it from another thread of the process that owns and has checked it. */
export function openRunDatabaseAgain(path: string): DatabaseSync {
  return opened(path, () => new DatabaseSync(join(path, 'run.db'), { timeout: 5000 }))
}

/**
 * Turns the write-ahead log on, before the first write. Commits are `synchronous=NORMAL`: a killed process loses none of
 * them. Against a power cut the writer also syncs the log, for results, steps and state (see createCommitQueue).
 */
export function startWriteAheadLog(database: DatabaseSync): void {
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4000; PRAGMA foreign_keys = ON')
  database.exec('BEGIN IMMEDIATE; COMMIT')
}

/**
 * Closes a database after writing. Without a write-ahead log a finished run can be read where nothing may be written; while
 * somebody else has it open the log is only emptied, and the last reader to close removes it.
 */
export function closeWrittenDatabase(database: DatabaseSync): void {
  try {
    database.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)')
    endWriteAheadLog(database)
  } catch {
    // The log stays until a later close; its content is as safe as the database.
  } finally {
    database.close()
  }
}

/** Closes a database that was read, and removes the log of a run that nobody else has open. */
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

/** Throws at once while another connection is open. */
function endWriteAheadLog(database: DatabaseSync): void {
  database.exec('PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE')
}

/** Opens `run.db` to read, beside its owner or alone. */
export function openRunDatabaseToRead(path: string): DatabaseSync {
  const file = join(path, 'run.db')
  if (!existsSync(file)) {
    throw new TrainError('STORE_CORRUPT', `${path} is not a run: it has no run.db. Name a folder below runs/.`)
  }
  return opened(path, () => {
    const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
    return guarded(database, () => check(path, database))
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

function check(path: string, database: DatabaseSync): void {
  const version = pragma(database, 'user_version')
  if (pragma(database, 'application_id') !== applicationId) throw corrupt(path, 'its run.db is not the database of a run')
  if (version !== storeVersion) throw anotherVersion(path, version)
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
