import type { Message, ToolCall } from '@aworld-train/core'
import type { ParsedCall } from './syntax/syntax.ts'
import type { CompletionDelta, TemplateProbe } from './types.ts'

export interface CompletionOutputOptions {
  /** Whether a turn may have more than one call. If not, only the first is delivered. */
  readonly parallelCalls: boolean
  readonly mintToolCallId: (index: number) => string
  /** The form of ids that the template accepts. An id that the model wrote in another form is not rendered again. */
  readonly idForm: TemplateProbe['idForm']
}

/** The part of a completion that was delivered so far, and the deltas that were not collected yet. */
export class CompletionOutput {
  readonly issues: string[] = []
  readonly promptCallIds: (string | null)[] = []
  readonly #options: CompletionOutputOptions
  readonly #calls: ToolCall[] = []
  #deltas: CompletionDelta[] = []
  #content = ''
  #reasoning = ''
  /** White space that is delivered only when text follows it. */
  #space = ''
  #dropsSpace = false

  constructor(options: CompletionOutputOptions) {
    this.#options = options
  }

  get called(): boolean {
    return this.#calls.length > 0
  }

  /** Whether only white space came after the last call. */
  get isBehindCall(): boolean {
    return this.called && this.#dropsSpace
  }

  get content(): string {
    return this.#content
  }

  get reasoning(): string {
    return this.#reasoning
  }

  get message(): Message {
    const content = this.#content === '' && this.called ? null : this.#content
    return {
      role: 'assistant',
      content,
      ...(this.#reasoning === '' ? {} : { reasoning: this.#reasoning }),
      ...(this.called ? { toolCalls: this.#calls } : {}),
    }
  }

  collect(): readonly CompletionDelta[] {
    if (this.#deltas.length === 0) return none
    const deltas = this.#deltas
    this.#deltas = []
    return deltas
  }

  /** Drops white space on both sides of this place, because it belongs to the syntax. */
  dropSpace(): void {
    this.#space = ''
    this.#dropsSpace = true
  }

  text(type: 'content' | 'reasoning', text: string): void {
    if (text === '') return
    const begun = text.trimStart()
    if (begun === '') {
      if (!this.#dropsSpace) this.#space += text
      return
    }
    const before = this.#dropsSpace ? begun : this.#space + text
    const shown = before.trimEnd()
    this.#space = before.slice(shown.length)
    this.#dropsSpace = false
    this.#show(type, shown)
  }

  /** Puts a blank line before a second message of the same kind. */
  separate(type: 'content' | 'reasoning'): void {
    const shown = type === 'content' ? this.#content : this.#reasoning
    this.#space = shown === '' ? '' : '\n\n'
    this.#dropsSpace = false
  }

  calls(calls: readonly ParsedCall[]): void {
    this.dropSpace()
    for (const call of calls) this.#call(call)
  }

  #call({ name, arguments: argumentsText, promptId }: ParsedCall): void {
    if (this.called && !this.#options.parallelCalls) {
      this.issues.push('parallel-call-dropped')
      return
    }
    const index = this.#calls.length
    const call: ToolCall = { id: this.#options.mintToolCallId(index), name, arguments: argumentsText }
    this.#calls.push(call)
    this.promptCallIds.push(promptId !== undefined && takesId[this.#options.idForm].test(promptId) ? promptId : null)
    this.#deltas.push({ type: 'tool-call', call, index })
  }

  /** Delivers white space at the end of a completion, unless it follows a call or a tag. */
  end(type: 'content' | 'reasoning'): void {
    if (this.#space === '' || this.#dropsSpace) return
    this.#show(type, this.#space)
    this.#space = ''
  }

  #show(type: 'content' | 'reasoning', text: string): void {
    if (type === 'content') this.#content += text
    else this.#reasoning += text
    this.#deltas.push({ type, text })
  }
}

const takesId: Readonly<Record<TemplateProbe['idForm'], RegExp>> = {
  any: /^/,
  'alphanumeric-9': /^[A-Za-z0-9]{9}$/,
  'function-index': /^functions\..+:\d+$/,
}

const none: readonly CompletionDelta[] = []
