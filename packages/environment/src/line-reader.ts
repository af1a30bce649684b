/** The beginning of a line that was longer than the limit, and its length. */
export interface OversizedLine {
  readonly bytes: number
  readonly head: string
  readonly tail: string
}

export interface LineReaderOptions {
  /** Longest line that is kept, in bytes. */
  readonly maxBytes: number
  onLine(line: Buffer): void
  onOversized(line: OversizedLine): void
}

const keptBytes = 256

/** Cuts a byte stream at its newlines. A line beyond the limit is counted and dropped as it comes, so memory stays bounded. */
export function createLineReader({ maxBytes, onLine, onOversized }: LineReaderOptions): (chunk: Buffer) => void {
  let parts: Buffer[] = []
  let bytes = 0
  let head: string | null = null
  let tail = Buffer.alloc(0)

  const keep = (part: Buffer) => {
    bytes += part.length
    if (head !== null) {
      tail = Buffer.concat([tail, part.subarray(-keptBytes)]).subarray(-keptBytes)
      return
    }
    parts.push(part)
    if (bytes > maxBytes) {
      const all = Buffer.concat(parts)
      head = all.toString('latin1', 0, keptBytes)
      tail = Buffer.from(all.subarray(-keptBytes))
      parts = []
    }
  }
  const finish = () => {
    if (head !== null) onOversized({ bytes, head, tail: tail.toString('latin1') })
    else if (bytes > 0) onLine(parts.length === 1 ? parts[0]! : Buffer.concat(parts))
    parts = []
    bytes = 0
    head = null
  }

  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      if (end > start) keep(chunk.subarray(start, end))
      start = end + 1
      finish()
    }
    if (start < chunk.length) keep(chunk.subarray(start))
  }
}
