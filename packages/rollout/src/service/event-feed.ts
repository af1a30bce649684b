import { randomBytes } from 'node:crypto'
import type { RunEvent } from '@aworld-train/core'

export interface FeedEvent {
  /** `{feed}-{number}`. The feed's name keeps an id of an earlier process from being taken for one of this. */
  readonly id: string
  readonly event: RunEvent
}

export interface EventQuery {
  /** Only events of this rollout; all when absent. */
  readonly rollout?: string | undefined
  /** Id of the last event that the reader has. Only later events when absent; all from the start when `''`. */
  readonly after?: string | undefined
  /** When it aborts, the reader gets the remaining events and ends. */
  readonly end?: AbortSignal | undefined
}

/** An event, or the notice that some events were forgotten before the reader got to them. */
export type EventEntry = FeedEvent | { readonly lost: true }

/** The newest events of a service, for any number of readers. A slow reader holds nobody up, but may miss events. */
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

  /** Number of the next event to read, and whether events before it are gone. */
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
      // Old events go in blocks, because a shift for each event would move all of them.
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
