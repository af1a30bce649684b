import { existsSync } from 'node:fs'
import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { RunStore } from '@aworld-train/core'
import { createCommitQueue } from './commit-queue.ts'
import { createEventLog } from './event-log.ts'
import { openRunDatabase, startWriteAheadLog } from './run-database.ts'
import { acquireRunLock } from './run-lock.ts'
import { ensureManifest, type ManifestInput, type RunManifest, writeManifest } from './run-manifest.ts'
import { createRunQueries, type RunCounts } from './run-queries.ts'
import { createRunWrites } from './run-writes.ts'
import { createSegmentWriter, type SegmentPosition, segmentSizes } from './segment-writer.ts'
import { corrupt, toStoreError } from './store-error.ts'

export interface RunStoreOptions {
  /** The run directory; made when missing. */
  readonly path: string
  /** Describes a new run; for an existing one only its configuration hash is compared. */
  readonly manifest?: ManifestInput | undefined
  /** Milliseconds in which writes gather to be committed together. Default 2. */
  readonly batchMs?: number | undefined
}

/** A run store with its manifest. */
export interface OwnedRunStore extends RunStore {
  readonly manifest: RunManifest
  /** Marks the run finished: the same command then starts a new one. */
  complete(): Promise<void>
  counts(): RunCounts
}

/** Opens or makes a run directory and becomes its one owner. Rejects with STORE_LOCKED, STORE_VERSION, STORE_CORRUPT, STORE_FULL, STORE_READ_ONLY, or CONFIG_INVALID for a run of another configuration. */
export async function openRunStore({ path, manifest: input, batchMs = 2 }: RunStoreOptions): Promise<OwnedRunStore> {
  const undo: (() => unknown)[] = []
  try {
    const isNew = !existsSync(path)
    await mkdir(path, { recursive: true })
    if (isNew) undo.push(() => rm(path, { recursive: true, force: true }))
    const lock = await acquireRunLock(path)
    undo.push(() => lock.release())
    let manifest = await ensureManifest(path, input)
    const directory = join(path, 'segments')
    await refuseLostDatabase(path, directory)
    const database = openRunDatabase(path)
    undo.push(() => database.close())
    const end = await recordedEnd(path, database, directory)
    startWriteAheadLog(database)
    const segments = await createSegmentWriter({ directory, end })
    undo.push(() => segments.close())
    const events = await createEventLog(join(path, 'events.jsonl'))
    undo.push(() => events.close())
    const queries = createRunQueries(path, database)
    const onError = (error: unknown) => toStoreError(error, path)
    const queue = await createCommitQueue({ database, segments, walPath: join(path, 'run.db-wal'), batchMs, onError })

    async function close(): Promise<void> {
      if (!database.isOpen) return
      await queue.close()
      queries.close()
      closeForReaders(database)
      await segments.close()
      try {
        await events.close()
      } catch (error) {
        throw onError(error)
      } finally {
        await lock.release()
      }
    }

    return {
      path,
      get manifest() {
        return manifest
      },
      ...createRunWrites(database, queue, queries),
      steps: queries.steps,
      rollout: queries.rollout,
      episode: queries.episode,
      episodes: queries.episodes,
      getState: queries.getState,
      counts: queries.counts,
      appendEvent: events.append,
      async complete() {
        manifest = { ...manifest, status: 'finished' }
        await writeManifest(path, manifest)
      },
      close,
    }
  } catch (error) {
    for (const step of undo.reverse()) await Promise.resolve(step()).catch(() => {})
    throw toStoreError(error, path)
  }
}

/** Without a write-ahead log a finished run can be read where nothing may be written. Skipped while a reader has it open. */
function closeForReaders(database: DatabaseSync): void {
  try {
    database.exec('PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE')
  } catch {
  } finally {
    database.close()
  }
}

/** Tokens without the database that names them are a damaged run, not a new one. */
async function refuseLostDatabase(path: string, directory: string): Promise<void> {
  const { size } = (await stat(join(path, 'run.db')).catch(() => null)) ?? { size: 0 }
  const segments = await segmentSizes(directory)
  if (size === 0 && [...segments.values()].some((bytes) => bytes > 0))
    throw corrupt(path, 'it has segments but its run.db is missing or empty')
}

/** End of the last tokens a row points at. Rejects with STORE_CORRUPT when a segment is shorter than its rows say. */
async function recordedEnd(path: string, database: DatabaseSync, directory: string): Promise<SegmentPosition> {
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
