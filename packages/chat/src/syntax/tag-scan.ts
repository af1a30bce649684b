import type { BodyScan, BodyState } from './syntax.ts'

export interface ValueTags {
  /** What the body begins with. */
  readonly head: string
  /** Begins a value, which is raw text. */
  readonly enter: string
  readonly leave: string
  /** What may stand behind a value, white space apart: elsewhere `leave` is text of the value. */
  readonly follow: readonly string[]
  /** Ends the body; `null` where only the closing marker does. */
  readonly end: string | null
}

type Place = 'head' | 'outside' | 'value' | 'behind' | 'ended'

/** Follows raw values between tags. */
export function scanTags(tags: ValueTags): BodyScan {
  return new TagScan(tags)
}

class TagScan implements BodyScan {
  readonly #tags: ValueTags
  readonly #longest: number
  #place: Place = 'head'
  #broken = false
  /** Text that was not decided on. */
  #held = ''

  constructor(tags: ValueTags) {
    this.#tags = tags
    this.#longest = Math.max(tags.enter.length, tags.leave.length, tags.end?.length ?? 0)
  }

  get state(): BodyState {
    if (this.#broken) return 'broken'
    if (this.#place === 'value') return 'argument'
    if (this.#tags.end !== null) return this.#place === 'ended' ? 'complete' : 'open'
    return this.#place === 'head' ? 'open' : 'complete'
  }

  read(text: string): void {
    let rest = this.#held + text
    this.#held = ''
    while (rest !== '' && !this.#broken) {
      const place = this.#place
      const before = rest.length
      rest = this.#step(rest)
      if (rest.length !== before || this.#place !== place) continue
      this.#held = rest
      return
    }
  }

  /** What is left behind a decision; the same text where more is needed. */
  #step(text: string): string {
    const { head, enter, leave, end } = this.#tags
    if (this.#place === 'head') return this.#readHead(text, head)
    if (this.#place === 'value') return this.#seek(text, leave, 'behind')
    if (this.#place === 'behind') return this.#readBehind(text)
    if (this.#place === 'ended') {
      this.#broken = text.trim() !== ''
      return ''
    }
    const ending = end === null ? -1 : text.indexOf(end)
    const entering = text.indexOf(enter)
    if (ending >= 0 && (entering < 0 || ending < entering)) {
      this.#place = 'ended'
      return text.slice(ending + end!.length)
    }
    return this.#seek(text, enter, 'value')
  }

  #readHead(text: string, head: string): string {
    const trimmed = text.trimStart()
    if (trimmed.length < head.length || trimmed === '') {
      this.#broken = !head.startsWith(trimmed)
      return trimmed
    }
    this.#broken = !trimmed.startsWith(head)
    this.#place = 'outside'
    return trimmed.slice(head.length)
  }

  #seek(text: string, tag: string, then: Place): string {
    const at = text.indexOf(tag)
    if (at < 0) return text.length < this.#longest ? text : text.slice(text.length - this.#longest + 1)
    this.#place = then
    return text.slice(at + tag.length)
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
