import type { CompletionOutput } from './completion-output.ts'
import type { CompletionReader } from './completion-reader.ts'
import type { ReasoningTags } from './reasoning-tags.ts'
import { MarkerFinder } from './syntax/markers.ts'
import type { TextPiece } from './token-text.ts'

export interface ReasoningReaderOptions {
  readonly output: CompletionOutput
  readonly tags: ReasoningTags
  /** Whether the prompt ends inside a reasoning block. */
  readonly isOpen: boolean
  /** Markers of calls, which are text within reasoning. */
  readonly callMarkers: readonly string[]
  readonly isSpecial: (marker: string) => boolean
  /** Reads the text after the reasoning. */
  readonly next: CompletionReader
}

/** Splits off the reasoning that a completion begins with. */
export function createReasoningReader(options: ReasoningReaderOptions): CompletionReader {
  return new ReasoningReader(options)
}

class ReasoningReader implements CompletionReader {
  readonly #options: ReasoningReaderOptions
  readonly #finder: MarkerFinder
  #state: 'before' | 'inside' | 'behind' = 'before'
  /** Plain text at the end that may become a marker. */
  #pending = ''
  /** Text that must follow the opening tag. */
  #label = ''
  #sawCall = false

  constructor(options: ReasoningReaderOptions) {
    const { tags, isOpen, isSpecial } = options
    this.#options = options
    this.#finder = new MarkerFinder(isSpecial(tags.close) ? [] : [tags.close])
    if (isOpen) this.#begin()
  }

  read(piece: TextPiece): void {
    if (this.#state === 'behind') this.#options.next.read(piece)
    else if (piece.special) this.#readSpecial(piece)
    else this.#readText(piece.text)
  }

  finish(reallyStopped: boolean): void {
    this.#flush()
    if (this.#state === 'inside') {
      this.#noteCalls()
      this.#options.output.end('reasoning')
    } else this.#options.next.finish(reallyStopped)
  }

  #readSpecial(piece: TextPiece): void {
    const { tags, callMarkers, next } = this.#options
    this.#flush()
    if (this.#state === 'inside') {
      if (piece.text === tags.close) this.#end()
      else if (callMarkers.includes(piece.text)) this.#sawCall = true
    } else if (this.#state === 'before' && piece.text === tags.open) this.#begin()
    else if (this.#state === 'behind' || !piece.stop) {
      this.#state = 'behind'
      next.read(piece)
    }
  }

  #readText(piece: string): void {
    const text = this.#pending + piece
    this.#pending = ''
    let at = 0
    if (this.#state === 'before') at = this.#readBefore(text)
    if (this.#state === 'inside') at = this.#readInside(text, at)
    if (this.#state === 'behind' && at < text.length) this.#options.next.read({ text: text.slice(at), special: false, stop: false })
  }

  /** Holds back white space until the first word shows whether it is a tag. */
  #readBefore(text: string): number {
    const { output, tags, isSpecial } = this.#options
    const at = text.length - text.trimStart().length
    output.text('content', text.slice(0, at))
    if (at === text.length) return at
    if (!isSpecial(tags.open)) {
      if (text.startsWith(tags.open, at)) {
        this.#begin()
        return at + tags.open.length
      }
      if (tags.open.startsWith(text.slice(at))) return this.#hold(text, at)
    }
    this.#state = 'behind'
    return at
  }

  #begin(): void {
    this.#state = 'inside'
    this.#label = this.#options.tags.label ?? ''
    this.#options.output.dropSpace()
  }

  #readInside(text: string, from: number): number {
    const { output } = this.#options
    if (text.length - from < this.#label.length && this.#label.startsWith(text.slice(from))) return this.#hold(text, from)
    const at = text.startsWith(this.#label, from) ? from + this.#label.length : from
    this.#label = ''
    const found = this.#finder.find(text, at)
    const end = found?.at ?? this.#finder.heldFrom(text, at)
    output.text('reasoning', text.slice(at, end))
    if (!found) return this.#hold(text, end)
    this.#end()
    return end + found.marker.length
  }

  #end(): void {
    this.#noteCalls()
    this.#options.output.dropSpace()
    this.#state = 'behind'
  }

  #noteCalls(): void {
    const { output, callMarkers } = this.#options
    if (this.#sawCall || callMarkers.some((marker) => output.reasoning.includes(marker))) output.issues.push('call-in-reasoning')
  }

  #hold(text: string, at: number): number {
    this.#pending = text.slice(at)
    return text.length
  }

  /** Releases the text that was held back, because nothing follows that could make it a marker. */
  #flush(): void {
    const text = this.#pending
    this.#pending = ''
    if (text === '') return
    if (this.#state === 'inside') this.#options.output.text('reasoning', text)
    else {
      this.#state = 'behind'
      this.#options.next.read({ text, special: false, stop: false })
    }
  }
}
