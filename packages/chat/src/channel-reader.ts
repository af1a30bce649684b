import type { ToolDefinition } from '@aworld-train/core'
import type { CompletionOutput } from './completion-output.ts'
import type { CompletionReader } from './completion-reader.ts'
import { harmonyMarkers, recipientOf } from './syntax/harmony.ts'
import { MarkerFinder } from './syntax/markers.ts'
import type { BodyScan, ToolCallSyntax } from './syntax/syntax.ts'
import type { TextPiece } from './token-text.ts'

export interface ChannelReaderOptions {
  readonly output: CompletionOutput
  readonly syntax: ToolCallSyntax
  readonly tools: readonly ToolDefinition[]
  readonly isSpecial: (marker: string) => boolean
}

type State = 'header' | 'reasoning' | 'content' | 'call'

/**
 * Splits a completion into messages with headers, as gpt-oss writes them. The channel `analysis` is reasoning, and a
 * message with a recipient is a call.
 */
export function createChannelReader(options: ChannelReaderOptions): CompletionReader {
  return new ChannelReader(options)
}

class ChannelReader implements CompletionReader {
  readonly #options: ChannelReaderOptions
  readonly #output: CompletionOutput
  readonly #finder: MarkerFinder
  /** The prompt ends after `<|start|>assistant`. */
  #state: State = 'header'
  #header = ''
  #hasChannel = false
  #started = false
  #body = ''
  /** Scanner of the body of a call; `null` outside of calls. */
  #scan: BodyScan | null = null
  #pending = ''

  constructor(options: ChannelReaderOptions) {
    this.#options = options
    this.#output = options.output
    this.#finder = new MarkerFinder(harmonyMarkers.filter((marker) => !options.isSpecial(marker)))
  }

  read({ text, special }: TextPiece): void {
    if (special) {
      this.#text(this.#takePending())
      if ((harmonyMarkers as readonly string[]).includes(text)) this.#marker(text)
      return
    }
    const whole = this.#takePending() + text
    let at = 0
    for (let found = this.#finder.find(whole, at); found; found = this.#finder.find(whole, at)) {
      this.#text(whole.slice(at, found.at))
      if (this.#scan?.state === 'argument') this.#text(found.marker)
      else this.#marker(found.marker)
      at = found.at + found.marker.length
    }
    const end = this.#finder.heldFrom(whole, at)
    this.#text(whole.slice(at, end))
    this.#pending = whole.slice(end)
  }

  finish(reallyStopped: boolean): void {
    this.#text(this.#takePending())
    if (this.#state === 'call') this.#endCall(reallyStopped ? 'close-missing' : 'call-unclosed')
    else if (this.#state === 'header' && !this.#started && !this.#hasChannel) this.#output.text('content', this.#header)
    this.#output.end(this.#state === 'reasoning' ? 'reasoning' : 'content')
  }

  #takePending(): string {
    const rest = this.#pending
    this.#pending = ''
    return rest
  }

  #text(text: string): void {
    if (text === '') return
    if (this.#state === 'header') this.#header += text
    else if (this.#state === 'call') {
      this.#body += text
      this.#scan?.read(text)
    } else this.#output.text(this.#state, text)
  }

  #marker(marker: string): void {
    if (marker === '<|message|>') {
      if (this.#state === 'header') this.#begin()
      else this.#text(marker)
    } else if (marker === '<|constrain|>') this.#header += ' <|constrain|>'
    else if (marker === '<|channel|>' && this.#state === 'header') {
      this.#hasChannel = true
      this.#header += ' <|channel|>'
    } else this.#end(marker)
  }

  #begin(): void {
    const header = this.#header
    const channel = /<\|channel\|>\s*([A-Za-z]+)/.exec(header)?.[1]
    this.#body = ''
    if (this.#options.tools.length > 0 && recipientOf(header) !== null) this.#state = 'call'
    else this.#state = channel === 'analysis' ? 'reasoning' : 'content'
    if (this.#state === 'call') {
      this.#scan = this.#options.syntax.scan()
      return
    }
    this.#output.separate(this.#state)
  }

  #end(marker: string): void {
    if (this.#state === 'call')
      this.#endCall(marker === this.#options.syntax.close ? null : marker === '<|return|>' ? 'close-missing' : 'call-invalid')
    this.#state = 'header'
    this.#hasChannel = marker === '<|channel|>'
    this.#started = true
    this.#header = marker === '<|channel|>' ? '<|channel|>' : ''
  }

  /** Ends a call. `issue` names what is wrong with its end; `null` if nothing is. */
  #endCall(issue: string | null): void {
    const { syntax, tools } = this.#options
    const accepted = issue === null || issue === 'close-missing'
    const calls = accepted ? syntax.parse(`${this.#header}<|message|>${this.#body}`, tools) : null
    if (calls === null) {
      this.#output.separate('content')
      this.#output.text('content', this.#body)
    } else this.#output.calls(calls)
    const problem = calls === null && accepted ? 'call-invalid' : issue
    if (problem !== null) this.#output.issues.push(problem)
    this.#state = 'content'
    this.#scan = null
  }
}
