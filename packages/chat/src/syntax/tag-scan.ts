import { MarkerFinder } from './markers.ts'
import type { BodyScan, BodyState } from './syntax.ts'

export interface ValueTags {
  /** The beginning of the body. */
  readonly head: string
  /** Text that begins a value, which is raw text. */
  readonly enter: string
  readonly leave: string
  /** Texts that may follow a value, apart from white space. `leave` before any other text is part of the value. */
  readonly follow: readonly string[]
  /** Two texts, separated only by white space, that begin another call. A value that contains them was never closed. */
  readonly another: readonly [string, string]
  /** Text that ends the body; `null` if only the closing marker does. */
  readonly end: string | null
}

type Place = 'head' | 'outside' | 'value' | 'behind' | 'another' | 'ended'

interface Finders {
  readonly inValue: MarkerFinder
  readonly outside: MarkerFinder
}

/** Follows raw values between tags. */
export function tagScanner(tags: ValueTags): () => BodyScan {
  const finders: Finders = {
    inValue: new MarkerFinder([tags.leave, tags.another[0]]),
    outside: new MarkerFinder(tags.end === null ? [tags.enter] : [tags.enter, tags.end]),
  }
  return () => new TagScan(tags, finders)
}

class TagScan implements BodyScan {
  readonly #tags: ValueTags
  readonly #finders: Finders
  #place: Place = 'head'
  #broken = false
  /** Text whose meaning is not decided yet. */
  #pending = ''

  constructor(tags: ValueTags, finders: Finders) {
    this.#tags = tags
    this.#finders = finders
  }

  get state(): BodyState {
    if (this.#broken) return 'broken'
    if (this.#place === 'value' || this.#place === 'another') return 'argument'
    if (this.#tags.end !== null) return this.#place === 'ended' ? 'complete' : 'open'
    return this.#place === 'head' ? 'open' : 'complete'
  }

  read(text: string): void {
    let rest = this.#pending + text
    this.#pending = ''
    while (rest !== '' && !this.#broken) {
      const place = this.#place
      const before = rest.length
      rest = this.#step(rest)
      if (rest.length !== before || this.#place !== place) continue
      this.#pending = rest
      return
    }
  }

  /** Decides about the text at one place. Returns the rest, or the same text if more is needed. */
  #step(text: string): string {
    switch (this.#place) {
      case 'head':
        return this.#readHead(text)
      case 'value':
        return this.#seek(text, this.#finders.inValue)
      case 'another':
        return this.#readAnother(text)
      case 'behind':
        return this.#readBehind(text)
      case 'outside':
        return this.#seek(text, this.#finders.outside)
      default:
        this.#broken = text.trim() !== ''
        return ''
    }
  }

  #readHead(text: string): string {
    const { head } = this.#tags
    const trimmed = text.trimStart()
    if (trimmed.length < head.length || trimmed === '') {
      this.#broken = !head.startsWith(trimmed)
      return trimmed
    }
    this.#broken = !trimmed.startsWith(head)
    this.#place = 'outside'
    return trimmed.slice(head.length)
  }

  #seek(text: string, finder: MarkerFinder): string {
    const found = finder.find(text, 0)
    if (!found) return text.slice(finder.heldFrom(text, 0))
    const { enter, leave } = this.#tags
    if (this.#place === 'outside') this.#place = found.marker === enter ? 'value' : 'ended'
    else this.#place = found.marker === leave ? 'behind' : 'another'
    return text.slice(found.at + found.marker.length)
  }

  #readAnother(text: string): string {
    const second = this.#tags.another[1]
    const trimmed = text.trimStart()
    if (trimmed.startsWith(second)) this.#broken = true
    else if (!second.startsWith(trimmed)) this.#place = 'value'
    return trimmed
  }

  #readBehind(text: string): string {
    const trimmed = text.trimStart()
    if (this.#tags.follow.some((tag) => trimmed.startsWith(tag))) {
      this.#place = 'outside'
      return trimmed
    }
    if (this.#tags.follow.some((tag) => tag.startsWith(trimmed))) return trimmed
    this.#place = 'value'
    return trimmed
  }
}
