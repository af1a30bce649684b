/** Memory that grows as it is filled. */
export class GrowingBytes {
  #bytes = Buffer.allocUnsafeSlow(16 * 1024)
  length = 0

  #reserve(more: number): void {
    if (this.#bytes.length >= this.length + more) return
    const larger = Buffer.allocUnsafeSlow(2 * (this.length + more))
    larger.set(this.#bytes.subarray(0, this.length))
    this.#bytes = larger
  }

  /** Returns how many bytes of UTF-8 the text is. */
  addText(text: string): number {
    // A UTF-16 unit is three bytes at most.
    this.#reserve(3 * text.length)
    const written = this.#bytes.write(text, this.length, 'utf8')
    this.length += written
    return written
  }

  add({ buffer, byteOffset, byteLength }: ArrayBufferView): void {
    this.#reserve(byteLength)
    this.#bytes.set(new Uint8Array(buffer, byteOffset, byteLength), this.length)
    this.length += byteLength
  }

  slice(from: number, to: number): Uint8Array {
    return this.#bytes.subarray(from, to)
  }

  /** A copy of what was filled, in memory of its own; what comes next begins anew. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = Uint8Array.prototype.slice.call(this.#bytes, 0, this.length) as Uint8Array<ArrayBuffer>
    this.length = 0
    return taken
  }
}
