import { randomBytes } from 'node:crypto'
import type { RunEvent } from '@aworld-train/protocol'

export interface FeedEvent {
  /** `{feed}-{number}`: names the feed too, so that an id of an earlier process is not taken for one of this. */
  readonly id: string
  readonly event: RunEvent
}

export interface EventQuery {
  /** Events of one rollout only; all when absent. */
  readonly rollout?: string | undefined
  /** Id of the last event that is known already; only what comes from now on when absent, and from the start when `''`. */
  readonly after?: string | undefined
  /** Once it aborts, the reader gets what there is and ends. */
  readonly end?: AbortSignal | undefined
}

/** What a reader gets: an event, or word that some between two were forgotten before it read them. */
export type EventEntry = FeedEvent | { readonly lost: true }

/** The newest events of a service, for any number of readers; a slow reader costs nothing but its own place. */
export interface EventFeed {
  append(event: RunEvent): void
  /** Ends when the signal aborts or the feed closes. */
  read(query: EventQuery, signal: AbortSignal): AsyncGenerator<EventEntry, void, void>
  close(): void
}

export function createEventFeed({ maxEvents = 10_000 }: { maxEvents?: number | undefined } = {}): EventFeed {
  const name = randomBytes(4).toString('hex')
  const events: FeedEvent[] = []
  /** Number of `events[0]`. */
  let first = 1
  let closed = false
  let wake: (() => void)[] = []

  const rouse = () => {
    const waiting = wake
    wake = []
    for (const resolve of waiting) resolve()
  }

  /** The number to go on from, and whether events before it are gone. */
  function start(after: string | undefined): { next: number; lost: boolean } {
    const end = first + events.length
    if (after === undefined) return { next: end, lost: false }
    if (after === '') return { next: first, lost: false }
    const dash = after.lastIndexOf('-')
    const number = Number(after.slice(dash + 1))
    if (after.slice(0, dash) !== name || !Number.isSafeInteger(number) || number >= end) return { next: first, lost: true }
    return { next: number + 1, lost: false }
  }

  return {
    append(event) {
      events.push({ id: `${name}-${first + events.length}`, event })
      // In blocks: a shift for each event would move all of them.
      if (events.length >= maxEvents * 2) first += events.splice(0, events.length - maxEvents).length
      rouse()
    },
    async *read({ rollout, after, end }, signal) {
      let { next, lost } = start(after)
      signal.addEventListener('abort', rouse)
      end?.addEventListener('abort', rouse)
      try {
        while (!signal.aborted) {
          if (next < first) {
            lost = true
            next = first
          }
          if (lost) {
            lost = false
            yield { lost: true }
            continue
          }
          const entry = events[next - first]
          if (entry) {
            next++
            if (rollout === undefined || ('rollout' in entry.event && entry.event.rollout === rollout)) yield entry
          } else if (closed || end?.aborted) return
          else await new Promise<void>((resolve) => wake.push(resolve))
        }
      } finally {
        signal.removeEventListener('abort', rouse)
        end?.removeEventListener('abort', rouse)
      }
    },
    close() {
      closed = true
      rouse()
    },
  }
}
