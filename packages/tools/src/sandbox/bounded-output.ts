export interface OutputText {
  readonly output: string
  readonly omittedBytes: number
}

/** Output of a command, kept within a limit: its first half and its last, and how much was between them. */
export class BoundedOutput {
  readonly #half: number
  #head: Buffer[] = []
  #headBytes = 0
  #tail: Buffer[] = []
  #tailBytes = 0
  #dropped = 0
  /** What was added last. */
  last: Buffer = Buffer.alloc(0)

  constructor(limitBytes: number) {
    this.#half = Math.floor(limitBytes / 2)
  }

  add(chunk: Buffer): void {
    this.last = chunk
    const toHead = chunk.subarray(0, this.#half - this.#headBytes)
    if (toHead.length > 0) {
      this.#head.push(toHead)
      this.#headBytes += toHead.length
    }
    if (toHead.length === chunk.length) return
    const toTail = chunk.subarray(toHead.length)
    this.#tail.push(toTail)
    this.#tailBytes += toTail.length
    while (this.#tail.length > 1 && this.#tailBytes - this.#tail[0]!.length >= this.#half) {
      const first = this.#tail.shift()!
      this.#tailBytes -= first.length
      this.#dropped += first.length
    }
  }

  /** Returns what was added since the last call. Characters are never cut. */
  take(): OutputText {
    const head = Buffer.concat(this.#head)
    const tail = Buffer.concat(this.#tail)
    const excess = Math.max(0, tail.length - this.#half)
    const dropped = this.#dropped
    this.#head = []
    this.#tail = []
    this.#headBytes = this.#tailBytes = this.#dropped = 0
    if (dropped + excess === 0) return { output: Buffer.concat([head, tail]).toString('utf8'), omittedBytes: 0 }
    const first = head.subarray(0, wholeCharacters(head))
    const last = tail.subarray(startOfCharacter(tail, excess))
    const omittedBytes = dropped + head.length - first.length + tail.length - last.length
    return { output: `${first.toString('utf8')}\n[${omittedBytes} bytes left out]\n${last.toString('utf8')}`, omittedBytes }
  }
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80

/** End of the last complete character. Bytes that are not UTF-8 count as complete. */
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!
    if (isContinuation(byte)) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** The first position from `start` on at which a character begins. */
function startOfCharacter(bytes: Buffer, start: number): number {
  let position = start
  while (position < start + 3 && isContinuation(bytes[position])) position++
  return position
}
