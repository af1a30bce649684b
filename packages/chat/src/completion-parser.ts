import type { FinishReason, Message, ToolCall, ToolDefinition } from '@aworld-train/protocol'
import type { ReasoningTags } from './reasoning-tags.ts'
import { createStopStrings } from './stop-strings.ts'
import type { ParsedCall, ToolCallSyntax } from './syntax/syntax.ts'
import { TextBuffer } from './text-buffer.ts'
import { createTokenText } from './token-text.ts'
import type { TextTokenizer } from './tokenizer.ts'
import type { CompletionDelta, CompletionParser, ParsedCompletion } from './types.ts'

export interface ParserSettings {
  readonly tokenizer: TextTokenizer
  readonly stopTokenIds: ReadonlySet<number>
  /** `null`: calls are not looked for. */
  readonly syntax: ToolCallSyntax | null
  readonly reasoning: ReasoningTags | null
  readonly reasoningOpen: boolean
  readonly promptTokenIds: Int32Array
  /** Whether the template can print more than one call of a turn; if not, the first alone is delivered. */
  readonly parallelCalls: boolean
  readonly tools: readonly ToolDefinition[]
  readonly stop: readonly string[]
  readonly mintToolCallId: (index: number) => string
}

type State = 'start' | 'reasoning' | 'content' | 'call'

/** One streaming machine for every syntax: reasoning is split off first, then calls; what is not a call stays content. */
export function createCompletionParser(settings: ParserSettings): CompletionParser {
  return new StreamingParser(settings)
}

class StreamingParser implements CompletionParser {
  readonly #settings: ParserSettings
  readonly #decoder
  readonly #stops
  readonly #buffer = new TextBuffer()
  readonly #marks: ReadonlySet<number>
  readonly #specialTexts = new Map<string, boolean>()
  #state: State
  #deltas: CompletionDelta[] = []
  #space = ''
  #content = ''
  #reasoning = ''
  #calls: ToolCall[] = []
  #issues: string[] = []
  #promptCallIds: (string | null)[] = []
  /** White space next to reasoning tags and calls belongs to the syntax. */
  #dropSpace = false
  /** Where the call under way begins its body, and how far its close markers were tried. */
  #bodyStart = 0
  #triedUntil = 0

  constructor(settings: ParserSettings) {
    const { tokenizer, stopTokenIds, stop, reasoning, reasoningOpen, promptTokenIds } = settings
    this.#settings = settings
    this.#marks = tokenizer.specialIds.union(stopTokenIds)
    this.#decoder = createTokenText(tokenizer, this.#marks, promptTokenIds)
    this.#stops = createStopStrings(stop)
    this.#state = reasoning === null ? 'content' : reasoningOpen ? 'reasoning' : 'start'
    this.#dropSpace = this.#state === 'reasoning'
  }

  get stopped(): boolean {
    return this.#stops.stopped
  }

  push(tokenIds: Int32Array): readonly CompletionDelta[] {
    for (const piece of this.#decoder.push(tokenIds)) {
      for (const passed of this.#stops.push(piece)) this.#buffer.append(passed)
    }
    this.#advance(false, false)
    return this.#collect()
  }

  finish({ unified }: { readonly unified: FinishReason['unified'] }): ParsedCompletion {
    for (const piece of this.#decoder.flush()) {
      for (const passed of this.#stops.push(piece)) this.#buffer.append(passed)
    }
    for (const piece of this.#stops.flush()) this.#buffer.append(piece)
    const reallyStopped = !this.stopped && (unified === 'stop' || unified === 'tool-calls')
    this.#advance(true, reallyStopped)
    this.#endText()
    const called = this.#calls.length > 0
    const ended = this.stopped || unified === 'tool-calls' ? 'stop' : unified
    return {
      deltas: this.#collect(),
      message: this.#message(),
      finishReason: called && ended === 'stop' ? 'tool-calls' : ended,
      issues: this.#issues,
      promptCallIds: this.#promptCallIds,
    }
  }

  #message(): Message {
    const content = this.#content === '' && this.#calls.length > 0 ? null : this.#content
    return {
      role: 'assistant',
      content,
      ...(this.#reasoning === '' ? {} : { reasoning: this.#reasoning }),
      ...(this.#calls.length === 0 ? {} : { toolCalls: this.#calls }),
    }
  }

  #collect(): readonly CompletionDelta[] {
    const deltas = this.#deltas
    this.#deltas = []
    return deltas
  }

  #advance(final: boolean, reallyStopped: boolean): void {
    let moved = true
    while (moved) {
      if (this.#state === 'start') moved = this.#start(final)
      else if (this.#state === 'reasoning') moved = this.#reason(final)
      else if (this.#state === 'content') moved = this.#readContent(final)
      else moved = this.#readCall(final, reallyStopped)
    }
  }

  #start(final: boolean): boolean {
    const { open } = this.#settings.reasoning!
    const at = this.#find(open)
    if (at >= 0 && this.#buffer.text.slice(0, at).trim() === '') {
      this.#buffer.take(at + open.length)
      this.#state = 'reasoning'
      this.#dropSpace = true
      return true
    }
    const trimmed = this.#buffer.text.trimStart()
    if (!final && open.startsWith(trimmed)) return false
    this.#state = 'content'
    return true
  }

  #reason(final: boolean): boolean {
    const { close } = this.#settings.reasoning!
    const at = this.#find(close)
    if (at < 0) {
      const held = final ? 0 : this.#heldBack([close])
      this.#emit('reasoning', this.#buffer.take(this.#buffer.length - held))
      return false
    }
    this.#emit('reasoning', this.#buffer.take(at))
    if (this.#callIn(this.#reasoning)) this.#issues.push('call-in-reasoning')
    this.#buffer.take(close.length)
    this.#space = ''
    this.#dropSpace = true
    this.#state = 'content'
    return true
  }

  #readContent(final: boolean): boolean {
    const syntax = this.#activeSyntax()
    const at = syntax ? this.#find(syntax.open) : -1
    if (!syntax || at < 0) {
      const held = final || !syntax ? 0 : this.#heldBack([syntax.open])
      this.#emit('content', this.#buffer.take(this.#buffer.length - held))
      return false
    }
    this.#emit('content', this.#buffer.take(at))
    this.#bodyStart = syntax.open.length
    this.#triedUntil = this.#bodyStart
    this.#state = 'call'
    return true
  }

  #readCall(final: boolean, reallyStopped: boolean): boolean {
    const { tools } = this.#settings
    const syntax = this.#activeSyntax()!
    for (let at = this.#nextClose(syntax); at >= 0; at = this.#nextClose(syntax)) {
      const calls = syntax.parse(this.#buffer.text.slice(this.#bodyStart, at), tools)
      const after = at + (syntax.close?.length ?? 0)
      if (calls) return this.#accept(calls, after)
      this.#triedUntil = after
    }
    if (!final) return false
    const whole = this.#buffer.peek(this.#bodyStart, this.#buffer.length)
    const calls = reallyStopped ? syntax.parse(whole, tools) : null
    if (calls) {
      if (syntax.close !== null) this.#issues.push('close-missing')
      return this.#accept(calls, this.#buffer.length)
    }
    this.#refuse(syntax)
    return true
  }

  #nextClose({ close }: ToolCallSyntax): number {
    return close === null ? -1 : this.#find(close, this.#triedUntil)
  }

  #accept(calls: readonly ParsedCall[], length: number): boolean {
    this.#buffer.take(length)
    this.#space = ''
    this.#dropSpace = true
    this.#state = 'content'
    for (const call of calls) this.#deliver(call)
    return true
  }

  #deliver(call: ParsedCall): void {
    if (this.#calls.length > 0 && !this.#settings.parallelCalls) {
      this.#issues.push('parallel-call-dropped')
      return
    }
    const index = this.#calls.length
    const delivered: ToolCall = { id: this.#settings.mintToolCallId(index), name: call.name, arguments: call.arguments }
    this.#calls.push(delivered)
    this.#promptCallIds.push(call.promptId ?? null)
    this.#deltas.push({ type: 'tool-call', call: delivered, index })
  }

  /** What could not be parsed is content, up to its first close marker; calls behind it still count. */
  #refuse({ close }: ToolCallSyntax): void {
    const at = close === null ? -1 : this.#find(close, this.#bodyStart)
    this.#issues.push(at < 0 ? 'call-unclosed' : 'call-invalid')
    this.#emit('content', this.#buffer.take(at < 0 ? this.#buffer.length : at + close!.length), true)
    this.#state = 'content'
  }

  #activeSyntax(): ToolCallSyntax | null {
    return this.#settings.tools.length === 0 ? null : this.#settings.syntax
  }

  #callIn(text: string): boolean {
    const syntax = this.#activeSyntax()
    return syntax !== null && text.includes(syntax.open)
  }

  #find(marker: string, from = 0): number {
    return this.#buffer.find(marker, this.#isSpecial(marker), from)
  }

  #heldBack(markers: readonly string[]): number {
    return this.#buffer.heldBack(markers.filter((marker) => !this.#isSpecial(marker)))
  }

  /** A marker that is a special token counts only where that token was sampled. */
  #isSpecial(marker: string): boolean {
    const known = this.#specialTexts.get(marker)
    if (known !== undefined) return known
    const { tokenizer } = this.#settings
    const special = this.#marks.has(tokenizer.tokenId(marker) ?? -1)
    this.#specialTexts.set(marker, special)
    return special
  }

  #emit(type: 'content' | 'reasoning', text: string, keepSpace = false): void {
    const whole = this.#space + text
    const body = this.#dropSpace && !keepSpace ? whole.trimStart() : whole
    const shown = body.trimEnd()
    this.#space = body.slice(shown.length)
    if (shown === '') return
    this.#dropSpace = false
    this.#show(type, shown)
  }

  #show(type: 'content' | 'reasoning', text: string): void {
    if (type === 'content') this.#content += text
    else this.#reasoning += text
    this.#deltas.push({ type, text })
  }

  /** White space at the end of a completion is what the model wrote, unless a call stands before it. */
  #endText(): void {
    if (this.#space === '' || this.#dropSpace) return
    this.#show(this.#state === 'reasoning' ? 'reasoning' : 'content', this.#space)
    this.#space = ''
  }
}
