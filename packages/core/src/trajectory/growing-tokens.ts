/** Ids of one branch. All its prefixes are views of the same memory, so that a conversation of n turns is stored once. */
export class GrowingTokens {
  #ids = new Int32Array(0)
  #used = 0

  /** The first `length` ids followed by `parts`, in the same memory if that is free there; `tokens` holds them. */
  extend(length: number, parts: readonly Int32Array[]): { readonly tokens: GrowingTokens; readonly ids: Int32Array } {
    const end = parts.reduce((sum, part) => sum + part.length, length)
    if (this.#used !== length) {
      if (this.#holds(length, end, parts)) return { tokens: this, ids: this.#ids.subarray(0, end) }
      return new GrowingTokens().extend(0, [this.#ids.subarray(0, length), ...parts])
    }
    if (end > this.#ids.length) {
      // Earlier views keep their memory.
      const grown = new Int32Array(length === 0 ? end : end + (end >> 1))
      grown.set(this.#ids.subarray(0, length))
      this.#ids = grown
    }
    let at = length
    for (const part of parts) {
      this.#ids.set(part, at)
      at += part.length
    }
    this.#used = end
    return { tokens: this, ids: this.#ids.subarray(0, end) }
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
