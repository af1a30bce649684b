import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { RunEvent } from '@aworld-train/core'
import { toStoreError } from './store-error.ts'

export interface EventPage {
  readonly events: readonly {
    /** Byte offset after the event's line: `after` of a reader that goes on from here. */
    readonly id: number
    readonly event: RunEvent
  }[]
  /** `after` of the next call. If it equals that of this call, there was nothing more yet. */
  readonly next: number
}

const chunkBytes = 1024 * 1024
const lineFeed = 0x0a

/**
 * Reads the events of the run at `path` after byte `after` of its log: at least the next one, and at most about a megabyte. An unfinished
 * last line is left for later, a line that is no event is skipped, and an offset within a line counts as the end of that line. Rejects with
 * STORE_CORRUPT if there is no log.
 */
export async function readEvents(path: string, after = 0): Promise<EventPage> {
  try {
    await using file = await open(join(path, 'events.jsonl'), 'r')
    // If `after` is an id, the byte before it ends a line.
    const from = Math.max(0, after - 1)
    const left = Math.max(0, (await file.stat()).size - from)
    for (let size = Math.min(chunkBytes, left); ; size = Math.min(2 * size, left)) {
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(size), 0, size, from)
      const bytes = buffer.subarray(0, bytesRead)
      const begin = from === 0 && after <= 0 ? 0 : bytes.indexOf(lineFeed) + 1
      const events = parseLines(bytes, begin, from)
      const next = Math.max(after, from + bytes.lastIndexOf(lineFeed) + 1)
      if (events.length > 0 || bytesRead < size || size === left) return { events, next }
    }
  } catch (error) {
    throw toStoreError(error, path)
  }
}

/** Parses the events of the whole lines from `begin` on. `offset` is the offset in the file of the first byte. */
function parseLines(bytes: Buffer, begin: number, offset: number): EventPage['events'] {
  const events: EventPage['events'][number][] = []
  for (let start = begin, end = bytes.indexOf(lineFeed, start); end >= 0; start = end + 1, end = bytes.indexOf(lineFeed, start)) {
    const event = parseLine(bytes.toString('utf8', start, end))
    if (event) events.push({ id: offset + end + 1, event })
  }
  return events
}

function parseLine(line: string): RunEvent | null {
  try {
    return RunEvent.safeParse(JSON.parse(line)).data ?? null
  } catch {
    return null
  }
}
