import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'
import type { RunUpdate } from '@aworld-train/core'
import { readEvents } from '@aworld-train/store'

/** Where the file system tells of no change, such as over a network, the log is looked at this often. */
const pollMs = 1_000

/** Events behind byte `after` of the log of the run at `path`, then those that are appended, until `signal` aborts or the log is gone. */
export async function* followEvents(path: string, after: number, signal: AbortSignal): AsyncGenerator<RunUpdate> {
  let changed = Promise.withResolvers<void>()
  const wake = () => changed.resolve()
  signal.addEventListener('abort', wake)
  const watcher = watchLog(path, wake)
  try {
    for (let next = after; !signal.aborted; ) {
      // A change between reading and waiting ends the wait at once.
      changed = Promise.withResolvers<void>()
      const page = await readEvents(path, next).catch(() => null)
      if (!page) return
      yield* page.events
      if (page.next === next && !signal.aborted) {
        const timer = setTimeout(wake, pollMs)
        await changed.promise
        clearTimeout(timer)
      }
      next = page.next
    }
  } finally {
    signal.removeEventListener('abort', wake)
    watcher?.close()
  }
}

function watchLog(path: string, onChange: () => void): FSWatcher | null {
  try {
    return watch(join(path, 'events.jsonl'), { persistent: false }, onChange).on('error', () => {})
  } catch {
    // Looking at the log from time to time finds the change then.
    return null
  }
}
