import type { ToolDefinition } from '@aworld-train/protocol'
import type { CompletionOutput } from './completion-output.ts'
import type { ReasoningTags } from './reasoning-tags.ts'
import { MarkerFinder } from './syntax/markers.ts'
import type { BodyScan, ToolCallSyntax } from './syntax/syntax.ts'
import type { TextPiece } from './token-text.ts'

/** Reads the pieces of one completion, each once, and delivers what they say. */
export interface CompletionReader {
  read(piece: TextPiece): void
  /** `reallyStopped`: the model ended its turn itself. */
  finish(reallyStopped: boolean): void
}

export interface TagReaderOptions {
  readonly output: CompletionOutput
  /** `null`: calls are not looked for. */
  readonly syntax: ToolCallSyntax | null
  readonly reasoning: ReasoningTags | null
  readonly reasoningOpen: boolean
  readonly tools: readonly ToolDefinition[]
  /** A marker that is a special token counts only where that token was sampled. */
  readonly isSpecial: (marker: string) => boolean
}

type State = 'start' | 'reasoning' | 'begin' | 'content' | 'call' | 'refused'

/** Characters that may be read again in all because a marker within an argument was none; past that the first marker decides. */
const patience = 262_144

/** Splits a text by markers: reasoning first, then calls; what is not a call stays content. */
export function createTagReader(options: TagReaderOptions): CompletionReader {
  return new TagReader(options)
}

class TagReader implements CompletionReader {
  readonly #options: TagReaderOptions
  readonly #output: CompletionOutput
  readonly #opens: readonly string[]
  readonly #around: readonly string[]
  readonly #inContent: MarkerFinder
  readonly #inCall: MarkerFinder
  readonly #inReasoning: MarkerFinder
  #state: State
  /** Plain text at the end that may become a marker. */
  #held = ''
  /** Pieces to read, the next one last. */
  readonly #stack: TextPiece[] = []
  #scan: BodyScan | null = null
  #body = ''
  /** The body of the call under way as it came. */
  #pieces: { text: string; special: boolean; stop: boolean }[] = []
  #opening: TextPiece | null = null
  #patience = patience
  #refusal: string | null = null
  #label: string | null = null
  #openInReasoning = false

  constructor(options: TagReaderOptions) {
    const { syntax, reasoning, reasoningOpen, isSpecial, output } = options
    this.#options = options
    this.#output = output
    this.#opens = syntax?.opens ?? []
    this.#around = syntax?.around ?? []
    const inText = (markers: readonly string[]) => new MarkerFinder(markers.filter((marker) => !isSpecial(marker)))
    this.#inContent = inText([...this.#opens, ...this.#around])
    this.#inCall = inText([...this.#opens, ...(syntax?.close ? [syntax.close] : [])])
    this.#inReasoning = inText(reasoning ? [reasoning.close] : [])
    this.#state = reasoning ? 'start' : 'begin'
    if (reasoningOpen) this.#beginReasoning()
  }

  read(piece: TextPiece): void {
    this.#stack.push(piece)
    this.#drain()
  }

  finish(reallyStopped: boolean): void {
    for (this.#flush(); this.#state === 'call'; this.#flush()) {
      const complete = this.#scan!.state === 'complete'
      if (complete && reallyStopped && this.#accept()) {
        if (this.#options.syntax!.close !== null) this.#output.issues.push('close-missing')
      } else this.#refuse(complete && reallyStopped ? 'call-invalid' : 'call-unclosed')
    }
    this.#settle('call-unclosed')
    if (this.#state === 'reasoning') this.#noteCallInReasoning()
    this.#noteMissingOpening()
    this.#output.end(this.#state === 'reasoning' ? 'reasoning' : 'content')
  }

  #drain(): void {
    for (let piece = this.#stack.pop(); piece; piece = this.#stack.pop()) {
      if (piece.special && this.#held === '') this.#readSpecial(piece)
      else if (piece.special) {
        this.#stack.push(piece)
        this.#readHeld()
      } else this.#readPlain(this.#held + piece.text)
    }
  }

  #readPlain(text: string): void {
    this.#held = ''
    for (let at = 0; at < text.length; ) at = this.#step(text, at)
  }

  /** Where to go on in `text`. */
  #step(text: string, at: number): number {
    switch (this.#state) {
      case 'start':
        return this.#readStart(text, at)
      case 'reasoning':
        return this.#readReasoning(text, at)
      case 'begin':
        return this.#readBegin(text, at)
      case 'content':
        return this.#readContent(text, at)
      case 'call':
        return this.#readCall(text, at)
      default:
        return this.#readRefused(text, at)
    }
  }

  #readSpecial(piece: TextPiece): void {
    const { text, stop } = piece
    const { syntax, reasoning } = this.#options
    const opens = this.#opens.includes(text)
    const closes = text === syntax?.close
    if (this.#state === 'start' && text === reasoning?.open) this.#beginReasoning()
    else if (this.#state === 'reasoning') {
      if (text === reasoning?.close) this.#endReasoning()
      else if (opens) this.#openInReasoning = true
    } else if (this.#state === 'call') {
      if (opens || closes) this.#endCall(piece)
      else if (!stop && !this.#feed(piece)) this.#refuse('call-invalid')
    } else if (opens || (closes && this.#state === 'refused')) {
      this.#settle('call-invalid')
      this.#state = 'content'
      if (opens) this.#openCall(piece)
    } else if (this.#around.includes(text)) this.#output.dropSpace()
    else if (this.#state === 'start' && !stop) this.#state = 'begin'
  }

  /** A marker that is a token is never text of an argument. */
  #endCall(piece: TextPiece): void {
    const { syntax } = this.#options
    const closes = piece.text === syntax?.close
    const ends = this.#scan!.state === 'complete' && (closes || syntax?.close === null)
    if (!ends || !this.#accept()) {
      this.#stack.push(piece)
      this.#refuse('call-invalid')
    } else if (!closes) this.#openCall(piece)
  }

  #readStart(text: string, from: number): number {
    const at = this.#passSpace(text, from)
    const { open } = this.#options.reasoning!
    if (at === text.length) return at
    if (!this.#options.isSpecial(open)) {
      if (text.startsWith(open, at)) {
        this.#beginReasoning()
        return at + open.length
      }
      if (text.length - at < open.length && open.startsWith(text.slice(at))) return this.#hold(text, at)
    }
    this.#state = 'begin'
    return at
  }

  #beginReasoning(): void {
    this.#state = 'reasoning'
    this.#label = this.#options.reasoning?.label ?? null
    this.#output.dropSpace()
  }

  #readReasoning(text: string, from: number): number {
    const at = this.#passLabel(text, from)
    if (at === text.length) return at
    const found = this.#inReasoning.find(text, at)
    if (!found) {
      const end = this.#inReasoning.heldFrom(text, at)
      this.#output.text('reasoning', text.slice(at, end))
      return this.#hold(text, end)
    }
    this.#output.text('reasoning', text.slice(at, found.at))
    this.#endReasoning()
    return found.at + found.marker.length
  }

  /** A word that stands behind the opening tag and is not part of the text. */
  #passLabel(text: string, at: number): number {
    const label = this.#label
    if (label === null) return at
    if (text.length - at < label.length && label.startsWith(text.slice(at))) return this.#hold(text, at)
    this.#label = null
    return text.startsWith(label, at) ? at + label.length : at
  }

  #endReasoning(): void {
    this.#noteCallInReasoning()
    this.#output.dropSpace()
    this.#state = 'begin'
  }

  #noteCallInReasoning(): void {
    if (this.#openInReasoning || this.#opens.some((open) => this.#output.reasoning.includes(open))) {
      this.#output.issues.push('call-in-reasoning')
    }
  }

  #readBegin(text: string, from: number): number {
    const at = this.#passSpace(text, from)
    if (at === text.length) return at
    this.#state = 'content'
    if (text[at] === this.#options.syntax?.bare) this.#openCall(null)
    return at
  }

  /** White space before the first word waits for what the word turns out to be. */
  #passSpace(text: string, at: number): number {
    const end = text.length - text.slice(at).trimStart().length
    this.#output.text('content', text.slice(at, end))
    return end
  }

  #readContent(text: string, at: number): number {
    const found = this.#inContent.find(text, at)
    if (!found) {
      const end = this.#inContent.heldFrom(text, at)
      this.#output.text('content', text.slice(at, end))
      return this.#hold(text, end)
    }
    this.#output.text('content', text.slice(at, found.at))
    if (this.#opens.includes(found.marker)) this.#openCall({ text: found.marker, special: false, stop: false })
    else this.#output.dropSpace()
    return found.at + found.marker.length
  }

  #openCall(opening: TextPiece | null): void {
    this.#state = 'call'
    this.#scan = this.#options.syntax!.scan()
    this.#body = ''
    this.#pieces = []
    this.#opening = opening
  }

  #readCall(text: string, from: number): number {
    const { close } = this.#options.syntax!
    let at = from
    let seek = from
    for (;;) {
      const found = this.#inCall.find(text, seek)
      const end = found?.at ?? this.#inCall.heldFrom(text, at)
      const fits = this.#feed({ text: text.slice(at, end), special: false, stop: false })
      at = end
      if (fits && !found) return this.#hold(text, at)
      const { state } = this.#scan!
      if (found && state === 'argument' && this.#patience > 0) {
        seek = at + 1
        continue
      }
      const closes = found?.marker === close
      if (found && state === 'complete' && (closes || close === null) && this.#accept()) return closes ? at + found.marker.length : at
      this.#stack.push({ text: text.slice(at), special: false, stop: false })
      this.#refuse('call-invalid')
      return text.length
    }
  }

  #readRefused(text: string, at: number): number {
    const found = this.#inCall.find(text, at)
    const end = found?.at ?? this.#inCall.heldFrom(text, at)
    this.#output.text('content', text.slice(at, end))
    if (!found) return this.#hold(text, end)
    this.#settle('call-invalid')
    this.#state = 'content'
    if (this.#opens.includes(found.marker)) return end
    this.#output.text('content', found.marker)
    return end + found.marker.length
  }

  /** Whether what was read may still be a call. */
  #feed(piece: TextPiece): boolean {
    const { text, special, stop } = piece
    this.#scan!.read(text)
    this.#body += text
    const last = this.#pieces.at(-1)
    if (last && !special && !last.special) last.text += text
    else if (text !== '') this.#pieces.push({ text, special, stop })
    const { state } = this.#scan!
    return state !== 'broken' && state !== 'other'
  }

  #accept(): boolean {
    const { syntax, tools } = this.#options
    const calls = syntax!.parse(this.#body, tools)
    if (calls === null) return false
    this.#output.calls(calls)
    this.#state = 'content'
    return true
  }

  /** What could not be parsed is content up to its first marker, and is read again from there. */
  #refuse(issue: string): void {
    const { syntax } = this.#options
    if (this.#opening && !this.#opening.special) this.#output.text('content', this.#opening.text)
    for (const piece of this.#pieces.reverse()) this.#stack.push(piece)
    this.#patience -= this.#body.length
    this.#refusal = this.#scan!.state === 'other' && this.#opening === null ? null : issue
    if (syntax!.close === null) this.#settle(issue)
    this.#state = 'refused'
  }

  #settle(issue: string): void {
    if (this.#refusal !== null) this.#output.issues.push(issue)
    this.#refusal = null
  }

  #hold(text: string, at: number): number {
    this.#held = text.slice(at)
    return text.length
  }

  /** Nothing follows that could make a marker of what was held back. */
  #flush(): void {
    this.#drain()
    while (this.#held !== '') {
      this.#readHeld()
      this.#drain()
    }
  }

  #readHeld(): void {
    const text = this.#held
    this.#held = ''
    if (this.#state === 'start' || this.#state === 'begin') {
      this.#state = 'content'
      if (text[0] === this.#options.syntax?.bare) this.#openCall(null)
    }
    if (this.#state === 'reasoning') this.#output.text('reasoning', text)
    else if (this.#state !== 'call') this.#output.text('content', text)
    else if (!this.#feed({ text, special: false, stop: false })) this.#refuse('call-invalid')
  }

  /** Part of a call outside of one: its opening marker was left out. */
  #noteMissingOpening(): void {
    const { syntax } = this.#options
    if (syntax?.tell && this.#output.issues.length === 0 && this.#output.content.includes(syntax.tell)) {
      this.#output.issues.push('open-missing')
    }
  }
}
