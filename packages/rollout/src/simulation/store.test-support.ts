import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { EpisodeReader, RolloutWriter, SubmissionStore } from '@aworld-train/core'
import { createCommitQueue } from '../../../store/src/commit-queue.ts'
import { createEncodedWrites } from '../../../store/src/encoded-writes.ts'
import { endOpenRollouts } from '../../../store/src/open-rollouts.ts'
import { createRunQueries } from '../../../store/src/run-queries.ts'
import { createRunWrites } from '../../../store/src/run-writes.ts'
import { schema } from '../../../store/src/schema.ts'
import { segmentPath } from '../../../store/src/segment-writer.ts'
import { toStoreError } from '../../../store/src/store-error.ts'
import type { SimulatedProcess } from './process.test-support.ts'
import type { World } from './world.test-support.ts'

/** What a coordinator needs of a store. */
export type SimulatedStore = RolloutWriter & SubmissionStore & EpisodeReader

/** Writes whose process may be killed at their commit. */
const named = {
  keepSubmission: 'submission',
  releaseSubmission: 'release',
  begin: 'begin',
  appendTurn: 'turn',
  finish: 'result',
  cancel: 'cancellation',
} as const

/**
 * A run directory that outlives the coordinators. Its database is in memory, its segment is a file, and both are written and read by the
 * store's own code. Appends and syncs take a time of the world, at each of which the process may be killed.
 */
export class SimulatedDisk {
  readonly database = new DatabaseSync(':memory:')
  #world: World
  #path = mkdtempSync(join(tmpdir(), 'simulation-'))
  #file: number
  #end = 0
  #closeReads: (() => void)[] = []

  constructor(world: World) {
    this.#world = world
    this.database.exec(`PRAGMA foreign_keys = ON;${schema}`)
    const directory = join(this.#path, 'segments')
    mkdirSync(directory)
    this.#file = openSync(segmentPath(directory, 1), 'w')
  }

  /** Opens the run for a process, as after the end of another one. */
  open(process: SimulatedProcess): SimulatedStore {
    const { random, rates, isFaulty, reach } = this.#world
    const pending = new Map<string, number>()
    const stage = { isCommitted: false }

    /** Takes a while, in which the process may be killed. */
    const work = () =>
      new Promise<void>((resolve) => {
        const isFatal = isFaulty() && random() < rates.killedAtCommit
        process.clock.after(2 + random() * 1000 * (isFaulty() ? rates.disk : 0.02), () => {
          if (!isFatal || !process.isUp()) return resolve()
          reach(stage.isCommitted ? 'killed between commit and answer' : 'killed before a commit')
          for (const [write, count] of pending) if (count > 0) reach(`killed at the commit of a ${write}`)
          process.kill()
          process.clock.after(0, resolve)
        })
      })

    endOpenRollouts(this.database, 'interrupted')
    const { close, ...queries } = createRunQueries(this.#path, this.database)
    this.#closeReads.push(close)
    const commits = createCommitQueue({
      database: this.database,
      segments: {
        append: async (chunks) => {
          await work()
          const at = { segment: 1, offset: this.#end }
          for (const chunk of chunks) this.#end += writeSync(this.#file, chunk, 0, chunk.byteLength, this.#end)
          return at
        },
        close: async () => {},
      },
      log: { datasync: () => this.#synced(stage, work), close: async () => {} },
      gather: work,
      onError: (error) => toStoreError(error, this.#path),
    })
    const writes = createRunWrites(createEncodedWrites(this.database, commits, { ...queries, close }))
    const counted = Object.fromEntries(
      Object.entries(named).map(([name, what]) => [
        name,
        (...parameters: never[]) => {
          pending.set(what, (pending.get(what) ?? 0) + 1)
          const write = writes[name as keyof typeof named] as (...parameters: never[]) => Promise<unknown>
          return write(...parameters).finally(() => pending.set(what, pending.get(what)! - 1))
        },
      ]),
    )
    return { ...queries, ...writes, ...counted }
  }

  async #synced(stage: { isCommitted: boolean }, work: () => Promise<void>): Promise<void> {
    stage.isCommitted = true
    await work()
    stage.isCommitted = false
  }

  /** What was sampled in the turns on disk, and the attempts under which it is kept. */
  turns(): { readonly content: string; readonly key: string; readonly attempt: number }[] {
    const rows = this.database.prepare(
      "SELECT t.body ->> '$.message.content' AS content, r.key, t.attempt FROM turns t JOIN rollouts r ON r.id = t.rollout",
    )
    return rows.all() as unknown as ReturnType<SimulatedDisk['turns']>
  }

  /** Removes it. What writes later is refused. */
  remove(): void {
    for (const close of this.#closeReads) close()
    this.database.close()
    closeSync(this.#file)
    rmSync(this.#path, { recursive: true })
  }
}
