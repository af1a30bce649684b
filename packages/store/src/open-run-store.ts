import { existsSync } from 'node:fs'
import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { HealthSample, RunManifest, RunStore, WorkerHealth } from '@aworld-train/core'
import { createEventLog } from './event-log.ts'
import { healthKey, workersKey } from './health-samples.ts'
import { keepFiles } from './keep-files.ts'
import { createLocalWriter } from './local-writer.ts'
import { endOpenRollouts } from './open-rollouts.ts'
import { closeWrittenDatabase, openRunDatabase } from './run-database.ts'
import { acquireRunLock } from './run-lock.ts'
import { ensureManifest, type ManifestInput, writeManifest } from './run-manifest.ts'
import { createRunQueries, type RunQueries } from './run-queries.ts'
import { createRunWrites, type RunWrites } from './run-writes.ts'
import { salvageRun } from './salvage.ts'
import { segmentSizes } from './segment-writer.ts'
import { corrupt, toStoreError } from './store-error.ts'
import { startThreadWriter } from './thread-writer.ts'

export interface RunStoreOptions {
  /** The run directory. It is created if missing. */
  readonly path: string
  /** Describes a new run. For an existing one only its configuration hash is compared. */
  readonly manifest?: ManifestInput | undefined
  /** Milliseconds in which writes gather to be committed together. Default 2. */
  readonly batchMs?: number | undefined
  /** Whether a thread of its own writes, for a process that serves many calls at the same time. */
  readonly thread?: boolean | undefined
}

/** A run store with its manifest. */
export interface OwnedRunStore extends Omit<RunStore, 'episodes'>, Omit<RunQueries, 'close'>, Omit<RunWrites, 'takeBack'> {
  readonly manifest: RunManifest
  /** Damage to the run's tokens found at opening, and what was done about it; `null` if no result lost tokens. */
  readonly damage: string | null
  /** Keeps a health sample of the process, and the state of its workers. */
  keepHealth(sample: HealthSample, workers?: readonly WorkerHealth[]): Promise<void>
  /** Marks the run finished, so that the same command starts a new one. */
  complete(): Promise<void>
  /** Takes results back, so that their rollouts run again, and marks the run unfinished. */
  reopen(rollouts: readonly string[]): Promise<void>
}

/**
 * Opens or creates a run directory and becomes its one owner. If tokens are damaged, the rest is saved and `damage` says what. Rejects with
 * STORE_LOCKED, STORE_VERSION, STORE_CORRUPT, STORE_FULL, STORE_READ_ONLY, or CONFIG_INVALID for a run of another configuration.
 */
export async function openRunStore({ path, manifest: input, batchMs = 2, thread = false }: RunStoreOptions): Promise<OwnedRunStore> {
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
    endOpenRollouts(database, 'interrupted')
    const damage = await salvageRun(path, database)
    const writer = thread ? await startThreadWriter({ path, batchMs }) : await createLocalWriter({ path, database, batchMs })
    undo.push(() => writer.close())
    const events = await createEventLog(join(path, 'events.jsonl'))
    undo.push(() => events.close())
    const { close: closeReads, ...reads } = createRunQueries(path, database)
    const onError = (error: unknown) => toStoreError(error, path)

    async function close(): Promise<void> {
      if (!database.isOpen) return
      await writer.close()
      closeReads()
      closeWrittenDatabase(database, () => endOpenRollouts(database, 'cancelled'))
      try {
        await events.close()
      } catch (error) {
        throw onError(error)
      } finally {
        await lock.release()
      }
    }

    const { takeBack, ...writes } = createRunWrites(writer.writes)
    const mark = async (status: RunManifest['status']) => {
      manifest = { ...manifest, status }
      await writeManifest(path, manifest)
    }

    return {
      path,
      damage,
      get manifest() {
        return manifest
      },
      ...reads,
      ...writes,
      async finish(episode, worker, files = []) {
        if (files.length > 0) await keepFiles(path, episode.files ?? [], files)
        await writes.finish(episode, worker)
      },
      async keepHealth(sample, workers = []) {
        await Promise.all([writes.setState(healthKey(sample), sample), writes.setState(workersKey, workers)])
      },
      appendEvent: events.append,
      complete: () => mark('finished'),
      async reopen(rollouts) {
        await mark('running')
        await takeBack(rollouts)
      },
      close,
    }
  } catch (error) {
    for (const step of undo.reverse()) await Promise.resolve(step()).catch(() => {})
    throw toStoreError(error, path)
  }
}

/** Throws for a folder that has segments but no database, because it is a damaged run and not a new one. */
async function refuseLostDatabase(path: string, directory: string): Promise<void> {
  const { size } = (await stat(join(path, 'run.db')).catch(() => null)) ?? { size: 0 }
  const segments = await segmentSizes(directory)
  if (size === 0 && [...segments.values()].some((bytes) => bytes > 0))
    throw corrupt(path, 'it has segments but its run.db is missing or empty')
}
