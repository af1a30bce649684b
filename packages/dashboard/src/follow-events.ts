import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'
import { type EventPage, readEvents } from '@aworld-train/store'

/** How often the log is checked where the file system reports no changes, such as over a network. */
const pollMs = 1_000

/** The event log of a run, for all who follow it. It is watched once, and followers at the same place share what is read. */
export interface FollowedLog {
  /** Yields events after byte `after`, then appended ones, as they were read together, until `signal` aborts or the log is gone. */
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
    // A page that was read before the last change may lack it.
    if (last?.after === after && last.changes === changes) return last.page
    const reading = { after, changes, page: readEvents(path, after) }
    last = reading
    const forget = () => {
      if (last === reading) last = null
    }
    // If there was nothing more, the next follower reads again.
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
    // The regular check of the log then finds the change.
    return null
  }
}
