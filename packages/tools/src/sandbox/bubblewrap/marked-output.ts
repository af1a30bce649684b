import type { BoundedOutput } from '../bounded-output.ts'

/** Splits a stream of bytes at a mark that nobody can guess. Bytes before it are output; the rest of its line is the result. */
export class MarkedOutput {
  readonly #output: BoundedOutput
  readonly #onMark: (result: string) => void
  #mark: Buffer | undefined
  #rest: Buffer = Buffer.alloc(0)

  constructor(output: BoundedOutput, onMark: (result: string) => void) {
    this.#output = output
    this.#onMark = onMark
  }

  /** Looks for this mark from here on. */
  expect(mark: string): void {
    this.#mark = Buffer.from(mark)
  }

  add(chunk: Buffer): void {
    const mark = this.#mark
    if (!mark) {
      this.#output.add(chunk)
      return
    }
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    this.#rest = Buffer.alloc(0)
    const start = bytes.indexOf(mark)
    const end = start < 0 ? -1 : bytes.indexOf(0x0a, start + mark.length)
    if (end < 0) {
      // The mark may continue in the next chunk, so bytes from its first one on are kept.
      const kept = start >= 0 ? start : bytes.lastIndexOf(mark[0]!)
      const from = kept >= 0 && (start >= 0 || bytes.length - kept < mark.length) ? kept : bytes.length
      this.#output.add(bytes.subarray(0, from))
      this.#rest = bytes.subarray(from)
      return
    }
    this.#mark = undefined
    this.#output.add(bytes.subarray(0, start))
    const result = bytes.toString('latin1', start + mark.length, end)
    this.#onMark(result)
    this.add(bytes.subarray(end + 1))
  }

  /** Ends the stream. Bytes that were kept are output. */
  end(): void {
    this.#output.add(this.#rest)
    this.#rest = Buffer.alloc(0)
  }
}
