import type { DatabaseSync } from 'node:sqlite'
import type { SegmentPosition, SegmentWriter } from './segment-writer.ts'

/** One write of a batch. */
export interface Write<T> {
  /** Tokens to append before the database is touched. */
  readonly chunks?: readonly Uint8Array[] | undefined
  /**
   * Whether the write survives a power cut once it is acknowledged. Other writes survive the death of the process, which is enough for
   * anything that a new attempt makes again.
   */
  readonly synced: boolean
  /** Runs inside the batch's transaction. `at` is where its chunks begin. It throws before its first change, or makes all its changes. */
  apply(at: SegmentPosition): T
}

export interface CommitQueue {
  /** Resolves when the write is durable. Rejects with the error of `apply`, or with the disk's error for the whole batch. */
  commit<T>(write: Write<T>): Promise<T>
  /** Refuses later writes, and resolves when the earlier ones are done. */
  close(): Promise<void>
}

export interface CommitQueueOptions {
  readonly database: DatabaseSync
  readonly segments: SegmentWriter
  /** The write-ahead log of `database`. */
  readonly log: { datasync(): Promise<void>; close(): Promise<void> }
  /** Resolves when the writes of a batch have arrived. */
  readonly gather: () => Promise<void>
  readonly onError: (error: unknown) => Error
}

interface Queued {
  readonly write: Write<unknown>
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/**
 * Group commit: the writes of a batch share one append and sync of the segment, and then one transaction. A row thus never
 * points at bytes that are not durable. Syncing the write-ahead log on the thread pool gives the strength of `synchronous=FULL`
 * without holding up the event loop.
 */
export function createCommitQueue({ database, segments, log, gather, onError }: CommitQueueOptions): CommitQueue {
  const begin = database.prepare('BEGIN IMMEDIATE')
  const commit = database.prepare('COMMIT')
  let queue: Queued[] = []
  let draining: Promise<void> | null = null
  let closed = false

  async function drain(): Promise<void> {
    while (queue.length > 0) {
      if (!closed) await gather()
      const batch = queue
      queue = []
      await runBatch(batch)
    }
    draining = null
  }

  async function runBatch(batch: readonly Queued[]): Promise<void> {
    try {
      const chunks = batch.flatMap(({ write }) => write.chunks ?? [])
      const at = chunks.length > 0 ? await segments.append(chunks) : { segment: 0, offset: 0 }
      const settle = applyAll(batch, at)
      if (batch.some(({ write }) => write.synced)) await log.datasync()
      for (const done of settle) done()
    } catch (error) {
      const reason = onError(error)
      for (const { reject } of batch) reject(reason)
    }
  }

  function applyAll(batch: readonly Queued[], { segment, offset }: SegmentPosition): (() => void)[] {
    let next = offset
    begin.run()
    try {
      const settle = batch.map(({ write, resolve, reject }) => {
        const at = { segment, offset: next }
        for (const chunk of write.chunks ?? []) next += chunk.byteLength
        try {
          const value = write.apply(at)
          return () => resolve(value)
        } catch (error) {
          if (isDatabaseError(error)) throw error
          return () => reject(onError(error))
        }
      })
      commit.run()
      return settle
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      throw error
    }
  }

  return {
    commit<T>(write: Write<T>) {
      if (closed) return Promise.reject(new Error('The run store is closed; open it again to write.'))
      return new Promise<T>((resolve, reject) => {
        queue.push({ write, resolve: resolve as (value: unknown) => void, reject })
        draining ??= drain()
      })
    },
    async close() {
      if (closed) return
      closed = true
      await draining
      await log.close()
    },
  }
}

function isDatabaseError(error: unknown): boolean {
  return (error as { code?: string }).code === 'ERR_SQLITE_ERROR'
}
