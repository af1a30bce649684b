import type { ToolDefinition } from '@aworld-train/core'
import type { CompletionOutput } from './completion-output.ts'
import type { CompletionReader } from './completion-reader.ts'
import { MarkerFinder } from './syntax/markers.ts'
import { OpenCall } from './syntax/open-call.ts'
import type { ToolCallSyntax } from './syntax/syntax.ts'
import type { TextPiece } from './token-text.ts'

export interface CallReaderOptions {
  readonly output: CompletionOutput
  readonly syntax: ToolCallSyntax
  readonly tools: readonly ToolDefinition[]
  /** Whether a marker is a special token, which counts only if that token was sampled. */
  readonly isSpecial: (marker: string) => boolean
}

type State = 'begin' | 'content' | 'call' | 'refused'

/**
 * Most characters that are read a second time because a marker within an argument turned out to be text. Beyond that
 * the first marker ends the call.
 */
const patience = 262_144

const plain = (text: string): TextPiece => ({ text, special: false, stop: false })

/** Splits a text by the markers of calls. Text that is no call stays content. */
export function createCallReader(options: CallReaderOptions): CompletionReader {
  return new CallReader(options)
}

class CallReader implements CompletionReader {
  readonly #syntax: ToolCallSyntax
  readonly #tools: readonly ToolDefinition[]
  readonly #output: CompletionOutput
  readonly #inContent: MarkerFinder
  readonly #inCall: MarkerFinder
  #state: State = 'begin'
  #call: OpenCall | null = null
  /** Plain text at the end that may become a marker. */
  #pending = ''
  /** Pieces to read, the next one last. */
  readonly #stack: TextPiece[] = []
  #patience = patience
  /** Markers of a group that were written as text. What follows tells whether the group contains a call. */
  #group = ''
  /** Whether a call was refused and the reader has not yet reached its first marker again. */
  #isRefused = false

  constructor({ output, syntax, tools, isSpecial }: CallReaderOptions) {
    this.#syntax = syntax
    this.#tools = tools
    this.#output = output
    const { opens, close, around = [] } = syntax
    const inText = (markers: readonly string[]) => new MarkerFinder(markers.filter((marker) => !isSpecial(marker)))
    this.#inContent = inText([...opens, ...around])
    this.#inCall = inText([...opens, ...around, ...(close === null ? [] : [close])])
  }

  read(piece: TextPiece): void {
    this.#stack.push(piece)
    this.#drain()
  }

  finish(reallyStopped: boolean): void {
    for (this.#flush(); this.#call !== null; this.#flush()) {
      const mayCount = reallyStopped && this.#call.state === 'complete'
      if (!mayCount || !this.#accept(this.#call)) this.#refuse(this.#call, mayCount ? 'call-invalid' : 'call-unclosed')
      else if (this.#syntax.close !== null) this.#output.issues.push('close-missing')
    }
    this.#settle('call-unclosed')
    this.#showGroup()
    this.#noteMissingOpening()
    this.#output.end('content')
  }

  #drain(): void {
    for (let piece = this.#stack.pop(); piece; piece = this.#stack.pop()) {
      if (!piece.special) this.#readText(this.#takePending() + piece.text)
      else if (this.#pending === '') this.#readSpecial(piece)
      else {
        this.#stack.push(piece)
        this.#readPending()
      }
    }
  }

  #readText(text: string): void {
    for (let at = 0; at < text.length; ) {
      if (this.#state === 'begin') at = this.#readBegin(text, at)
      else if (this.#state === 'content') at = this.#readContent(text, at)
      else if (this.#call !== null) at = this.#readCall(text, at, this.#call)
      else at = this.#readRefused(text, at)
    }
  }

  /** Reads a marker that is a token, which is never text of an argument. */
  #readSpecial(piece: TextPiece): void {
    const { opens, close, around = [] } = this.#syntax
    const isOpening = opens.includes(piece.text)
    const isClose = piece.text === close
    const isMarker = isOpening || isClose || around.includes(piece.text)
    if (this.#call !== null) {
      const call = this.#call
      if (!isMarker) {
        if (!piece.stop && !call.read(piece)) this.#refuse(call, 'call-invalid')
      } else if (!this.#ends(call, isClose)) {
        this.#stack.push(piece)
        this.#refuse(call, 'call-invalid')
      } else if (!isClose) this.#stack.push(piece)
    } else if (isMarker) {
      if (this.#state === 'refused') {
        this.#settle('call-invalid')
        this.#state = 'content'
      }
      if (isOpening) this.#open(piece)
      else if (!isClose) this.#output.dropSpace()
    }
  }

  /** Whether a marker ends the call. If so, the call is delivered. */
  #ends(call: OpenCall, isClose: boolean): boolean {
    return call.state === 'complete' && (isClose || this.#syntax.close === null) && this.#accept(call)
  }

  #readBegin(text: string, from: number): number {
    const at = text.length - text.slice(from).trimStart().length
    this.#output.text('content', text.slice(from, at))
    if (at === text.length) return at
    this.#state = 'content'
    if (text[at] === this.#syntax.bare) this.#open(null)
    return at
  }

  #readContent(text: string, at: number): number {
    const found = this.#inContent.find(text, at)
    const end = found?.at ?? this.#inContent.heldFrom(text, at)
    this.#show(text.slice(at, end))
    if (!found) return this.#hold(text, end)
    if (this.#syntax.opens.includes(found.marker)) this.#open(plain(found.marker))
    else if (!this.#output.isBehindCall) this.#group += found.marker
    return end + found.marker.length
  }

  #show(text: string): void {
    if (this.#group !== '' && text.trim() === '') this.#group += text
    else {
      this.#showGroup()
      this.#output.text('content', text)
    }
  }

  #showGroup(): void {
    this.#output.text('content', this.#group)
    this.#group = ''
  }

  #open(opening: TextPiece | null): void {
    this.#state = 'call'
    this.#call = new OpenCall(opening, this.#syntax.scan())
  }

  #readCall(text: string, from: number, call: OpenCall): number {
    let at = from
    let seek = from
    for (;;) {
      const found = this.#inCall.find(text, seek)
      const end = found?.at ?? this.#inCall.heldFrom(text, at)
      const fits = call.read(plain(text.slice(at, end)))
      at = end
      if (fits && !found) return this.#hold(text, at)
      if (found && call.state === 'argument' && this.#patience > 0) {
        seek = at + 1
        continue
      }
      const isClose = found?.marker === this.#syntax.close
      if (found && this.#ends(call, isClose)) return isClose ? at + found.marker.length : at
      this.#stack.push(plain(text.slice(at)))
      this.#refuse(call, 'call-invalid')
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
    if (found.marker !== this.#syntax.close) return end
    this.#output.text('content', found.marker)
    return end + found.marker.length
  }

  #accept(call: OpenCall): boolean {
    const calls = this.#syntax.parse(call.body, this.#tools)
    if (calls === null) return false
    this.#output.calls(calls)
    this.#group = ''
    this.#call = null
    this.#state = 'content'
    return true
  }

  /** Refuses a call that could not be parsed: it is content up to its first marker, and is read again from there. */
  #refuse(call: OpenCall, issue: string): void {
    const { opening, pieces, body, state } = call
    this.#call = null
    this.#state = 'refused'
    this.#showGroup()
    if (opening && !opening.special) this.#output.text('content', opening.text)
    for (let index = pieces.length - 1; index >= 0; index -= 1) this.#stack.push(pieces[index]!)
    this.#patience -= body.length
    this.#isRefused = opening !== null || state !== 'other'
    if (this.#syntax.close === null) this.#settle(issue)
  }

  #settle(issue: string): void {
    if (this.#isRefused) this.#output.issues.push(issue)
    this.#isRefused = false
  }

  #hold(text: string, at: number): number {
    this.#pending = text.slice(at)
    return text.length
  }

  #takePending(): string {
    const rest = this.#pending
    this.#pending = ''
    return rest
  }

  /** Releases the text that was held back, because nothing follows that could make it a marker. */
  #flush(): void {
    this.#drain()
    while (this.#pending !== '') {
      this.#readPending()
      this.#drain()
    }
  }

  #readPending(): void {
    const text = this.#takePending()
    if (this.#call === null) this.#show(text)
    else if (!this.#call.read(plain(text))) this.#refuse(this.#call, 'call-invalid')
  }

  /** Notes a missing opening marker if the content has a part of a call. */
  #noteMissingOpening(): void {
    const { tell } = this.#syntax
    if (tell && this.#output.issues.length === 0 && this.#output.content.includes(tell)) this.#output.issues.push('open-missing')
  }
}
