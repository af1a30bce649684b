import { open } from 'node:fs/promises'
import type { RunEvent } from '@aworld-train/core'
import { endOfLines } from './end-of-lines.ts'

/**
 * `events.jsonl`, with one event a line. Events are written shortly after they happen, so the last moments before a kill may be
 * missing; results are in the database.
 */
export interface EventLog {
  append(event: RunEvent): void
  /** Writes the waiting events. If the disk does not take them, it rejects and keeps them for the next time. */
  flush(): Promise<void>
  close(): Promise<void>
}

/** Opens the log to append after its last whole line. */
export async function createEventLog(path: string, flushMs = 100): Promise<EventLog> {
  const file = await open(path, 'a+')
  let offset = await endOfLines(file)
  await file.truncate(offset)
  let waiting: string[] = []
  let timer: NodeJS.Timeout | null = null
  let writing: Promise<void> = Promise.resolve()

  async function write(): Promise<void> {
    const lines = waiting
    if (lines.length === 0) return
    waiting = []
    try {
      const { bytesWritten } = await file.write(Buffer.from(lines.join('')))
      offset += bytesWritten
    } catch (error) {
      waiting = [...lines, ...waiting]
      await file.truncate(offset).catch(() => {})
      throw error
    }
  }

  function flush(): Promise<void> {
    if (timer) clearTimeout(timer)
    timer = null
    const result = writing.then(write)
    writing = result.catch(() => {})
    return result
  }

  return {
    append(event) {
      waiting.push(`${JSON.stringify(event)}\n`)
      timer ??= setTimeout(() => {
        flush().catch(() => {})
      }, flushMs).unref()
    },
    flush,
    async close() {
      try {
        await flush()
      } finally {
        await file.close()
      }
    },
  }
}
