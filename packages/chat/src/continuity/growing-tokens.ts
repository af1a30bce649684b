/** Token ids of one branch: every prompt on it is a view of the same memory, so that a conversation of n turns is stored once. */
export class GrowingTokens {
  #ids: Int32Array
  #used: number

  /** Takes `ids` over. */
  constructor(ids: Int32Array) {
    this.#ids = ids
    this.#used = ids.length
  }

  /** The first `length` ids followed by `parts`: in place where nothing else follows there yet, else `null`. */
  extend(length: number, parts: readonly Int32Array[]): Int32Array | null {
    const end = parts.reduce((sum, part) => sum + part.length, length)
    if (this.#used !== length) return this.#holds(length, end, parts) ? this.#ids.subarray(0, end) : null
    if (end > this.#ids.length) {
      const grown = new Int32Array(end + (end >> 1))
      grown.set(this.#ids.subarray(0, length))
      this.#ids = grown
    }
    let at = length
    for (const part of parts) {
      this.#ids.set(part, at)
      at += part.length
    }
    this.#used = end
    return this.#ids.subarray(0, end)
  }

  #holds(from: number, end: number, parts: readonly Int32Array[]): boolean {
    if (end > this.#used) return false
    let at = from
    for (const part of parts) {
      for (const id of part) if (this.#ids[at++] !== id) return false
    }
    return true
  }
}
