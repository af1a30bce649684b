import { badRequest } from '../failure.ts'

/** Records of ended sessions, as JSON, for clients that ask for them again. */
export interface KeptRecords {
  add(id: string, record: Buffer): void
  /** Throws GATEWAY_BAD_REQUEST if there is none, with the reason why it is gone. */
  find(id: string): Buffer
  close(): void
}

export interface KeptRecordsOptions {
  /** Most bytes of all records together. The oldest make room for newer ones. */
  readonly maxBytes: number
  readonly keptMs: number
}

/** Number of sessions without a record whose reason is remembered. */
const maxGone = 10_000

export function createKeptRecords({ maxBytes, keptMs }: KeptRecordsOptions): KeptRecords {
  /** In the order in which the sessions ended. */
  const records = new Map<string, { readonly record: Buffer; readonly timer: NodeJS.Timeout }>()
  const dropReasons = new Map<string, string>()
  let bytes = 0

  function drop(id: string, why: string): void {
    const dropped = records.get(id)!
    clearTimeout(dropped.timer)
    records.delete(id)
    bytes -= dropped.record.length
    dropReasons.set(id, why)
    if (dropReasons.size > maxGone) dropReasons.delete(dropReasons.keys().next().value!)
  }

  return {
    add(id, record) {
      const timer = setTimeout(() => drop(id, `a record is kept for ${keptMs} ms`), keptMs)
      // A session may end after the gateway was closed.
      timer.unref()
      records.set(id, { record, timer })
      bytes += record.length
      for (const oldest of records.keys()) {
        if (bytes <= maxBytes) break
        drop(oldest, `newer ones took its room, which is ${maxBytes} bytes (maxKeptBytes)`)
      }
    },
    find(id) {
      const found = records.get(id)
      if (found) return found.record
      const why = dropReasons.get(id)
      const message = why
        ? `The record of this session is gone: ${why}. Take a record from the answer to DELETE.`
        : `There is no such session; it was never opened, or it ended long ago.`
      throw badRequest(message, null, 404)
    },
    close() {
      for (const { timer } of records.values()) clearTimeout(timer)
      records.clear()
    },
  }
}
