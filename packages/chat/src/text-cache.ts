/** A cache that is limited by the characters of its keys. The least recently used results are dropped first. */
export class TextCache<T> {
  readonly #entries = new Map<string, T>()
  readonly #maxCharacters: number
  #characters = 0

  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters
  }

  has(key: string): boolean {
    return this.#entries.has(key)
  }

  get(key: string, compute: (key: string) => T): T {
    const entry = this.#entries.get(key)
    if (entry !== undefined) {
      this.#entries.delete(key)
      this.#entries.set(key, entry)
      return entry
    }
    const value = compute(key)
    if (key.length > this.#maxCharacters / 8) return value
    this.#entries.set(key, value)
    this.#characters += key.length
    for (const oldest of this.#entries.keys()) {
      if (this.#characters <= this.#maxCharacters) break
      this.#entries.delete(oldest)
      this.#characters -= oldest.length
    }
    return value
  }
}
