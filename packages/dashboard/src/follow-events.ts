import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'
import { type EventPage, readEvents } from '@aworld-train/store'

/** Where the file system tells of no change, such as over a network, the log is looked at this often. */
const pollMs = 1_000

/** The event log of a run, for all who follow it: it is watched once, and those who have come as far as each other share what is read. */
export interface FollowedLog {
  /** Events behind byte `after`, then those that are appended, as they were read together, until `signal` aborts or the log is gone. */
  follow(after: number, signal: AbortSignal): AsyncGenerator<EventPage['events']>
}

export function followedLog(path: string): FollowedLog {
  const followers = new Set<() => void>()
  let watcher: FSWatcher | null = null
  let changes = 0
  let last: { readonly after: number; readonly changes: number; readonly page: Promise<EventPage> } | null = null

  function wakeAll(): void {
    changes += 1
    for (const wake of followers) wake()
  }

  function read(after: number): Promise<EventPage> {
    // What was read before the last change may lack it.
    if (last?.after === after && last.changes === changes) return last.page
    const reading = { after, changes, page: readEvents(path, after) }
    last = reading
    const forget = () => {
      if (last === reading) last = null
    }
    // Where there was nothing more, the next one looks again.
    reading.page.then(({ next }) => next === after && forget(), forget)
    return reading.page
  }

  return {
    async *follow(after, signal) {
      let changed = Promise.withResolvers<void>()
      const wake = () => changed.resolve()
      signal.addEventListener('abort', wake)
      followers.add(wake)
      watcher ??= watchLog(path, wakeAll)
      try {
        for (let next = after; !signal.aborted; ) {
          // A change between reading and waiting ends the wait at once.
          changed = Promise.withResolvers<void>()
          const page = await read(next).catch(() => null)
          if (!page) return
          if (page.events.length > 0) yield page.events
          if (page.next === next && !signal.aborted) {
            const timer = setTimeout(wake, pollMs)
            await changed.promise
            clearTimeout(timer)
          }
          next = page.next
        }
      } finally {
        signal.removeEventListener('abort', wake)
        followers.delete(wake)
        if (followers.size === 0) {
          watcher?.close()
          watcher = null
        }
      }
    },
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
