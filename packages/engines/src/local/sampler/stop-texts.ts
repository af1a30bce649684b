/** Watches the bytes of a completion for stop texts, which may begin in one token and end in another. */
export class StopTexts {
  readonly #texts: readonly Buffer[]
  readonly #kept: number
  #tail: Buffer = Buffer.alloc(0)

  constructor(texts: readonly string[]) {
    this.#texts = texts.map((text) => Buffer.from(text))
    this.#kept = Math.max(0, ...this.#texts.map(({ length }) => length - 1))
  }

  /** Whether a stop text has ended within these bytes, the next of the completion. */
  endsWith(bytes: Uint8Array): boolean {
    const seen = Buffer.concat([this.#tail, bytes])
    this.#tail = seen.subarray(Math.max(0, seen.length - this.#kept))
    return this.#texts.some((text) => seen.includes(text))
  }
}
