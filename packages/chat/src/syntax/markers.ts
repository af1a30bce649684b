const escaped = (marker: string): string => marker.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** Finds markers in text that arrives in pieces. */
export class MarkerFinder {
  readonly #pattern: RegExp | null
  readonly #markers: readonly string[]
  readonly #longest: number
  readonly #firstCodes: ReadonlySet<number>

  constructor(markers: readonly string[]) {
    this.#markers = markers
    const longestFirst = [...markers].sort((left, right) => right.length - left.length)
    this.#pattern = markers.length === 0 ? null : new RegExp(longestFirst.map((marker) => escaped(marker)).join('|'), 'g')
    this.#longest = longestFirst[0]?.length ?? 0
    this.#firstCodes = new Set(markers.map((marker) => marker.charCodeAt(0)))
  }

  /** The first marker at or after `from`; `null` for none. */
  find(text: string, from: number): { readonly at: number; readonly marker: string } | null {
    if (this.#pattern === null) return null
    this.#pattern.lastIndex = from
    const found = this.#pattern.exec(text)
    return found && { at: found.index, marker: found[0] }
  }

  /** Start of the longest end of `text` that may become a marker; the length of the text for none. */
  heldFrom(text: string, from: number): number {
    for (let at = Math.max(from, text.length - this.#longest + 1); at < text.length; at += 1) {
      if (!this.#firstCodes.has(text.charCodeAt(at))) continue
      const end = text.slice(at)
      if (this.#markers.some((marker) => marker.length > end.length && marker.startsWith(end))) return at
    }
    return text.length
  }
}
