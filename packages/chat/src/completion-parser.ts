import type { FinishReason, ToolDefinition } from '@aworld-train/core'
import { createCallReader } from './call-reader.ts'
import { createChannelReader } from './channel-reader.ts'
import { CompletionOutput } from './completion-output.ts'
import type { CompletionReader } from './completion-reader.ts'
import { createReasoningReader } from './reasoning-reader.ts'
import type { ReasoningTags } from './reasoning-tags.ts'
import { createStopStrings } from './stop-strings.ts'
import type { ToolCallSyntax } from './syntax/syntax.ts'
import { createTokenText, type TextPiece } from './token-text.ts'
import type { TextTokenizer } from './tokenizer.ts'
import type { CompletionDelta, CompletionParser, ParsedCompletion, TemplateProbe } from './types.ts'

export interface ParserSettings {
  readonly tokenizer: TextTokenizer
  readonly stopTokenIds: ReadonlySet<number>
  /** Syntax of calls; `null` if calls are not looked for. */
  readonly syntax: ToolCallSyntax | null
  readonly reasoning: ReasoningTags | null
  readonly reasoningOpen: boolean
  readonly promptTokenIds: Int32Array
  /** Whether the template can print more than one call of a turn. If not, only the first is delivered. */
  readonly parallelCalls: boolean
  readonly tools: readonly ToolDefinition[]
  readonly stop: readonly string[]
  /** Text at the end of the prompt that belongs to the completion: the opening of a call. */
  readonly forced: string
  readonly mintToolCallId: (index: number) => string
  readonly idForm: TemplateProbe['idForm']
}

/** A streaming parser for every syntax. Ids become text, stop strings cut it, and a reader separates reasoning, content and calls. */
export function createCompletionParser(settings: ParserSettings): CompletionParser {
  return new StreamingParser(settings)
}

class StreamingParser implements CompletionParser {
  readonly #decoder
  readonly #stops
  readonly #output: CompletionOutput
  readonly #reader: CompletionReader

  constructor(settings: ParserSettings) {
    const { tokenizer, stopTokenIds, stop, promptTokenIds, forced } = settings
    this.#decoder = createTokenText(tokenizer, stopTokenIds, promptTokenIds)
    this.#stops = stop.some((text) => text !== '') ? createStopStrings(stop) : null
    this.#output = new CompletionOutput(settings)
    this.#reader = readerOf(settings, this.#output)
    if (forced === '') return
    const opening = createTokenText(tokenizer, stopTokenIds, new Int32Array())
    for (const piece of [...opening.push(tokenizer.encode(forced)), ...opening.flush()]) this.#reader.read(piece)
  }

  get stopped(): boolean {
    return this.#stops?.stopped ?? false
  }

  push(tokenIds: Int32Array): readonly CompletionDelta[] {
    this.#read(this.#decoder.push(tokenIds))
    return this.#output.collect()
  }

  finish({ unified }: { readonly unified: FinishReason['unified'] }): ParsedCompletion {
    this.#read(this.#decoder.flush())
    for (const piece of this.#stops?.flush() ?? []) this.#reader.read(piece)
    this.#reader.finish(!this.stopped && (unified === 'stop' || unified === 'tool-calls'))
    const ended = this.stopped || unified === 'tool-calls' ? 'stop' : unified
    const { message, issues, promptCallIds, called } = this.#output
    return {
      deltas: this.#output.collect(),
      message,
      finishReason: called && ended === 'stop' ? 'tool-calls' : ended,
      issues,
      promptCallIds,
    }
  }

  #read(pieces: readonly TextPiece[]): void {
    for (const piece of pieces) {
      if (this.#stops === null) this.#reader.read(piece)
      else for (const passed of this.#stops.push(piece)) this.#reader.read(passed)
    }
  }
}

function readerOf(settings: ParserSettings, output: CompletionOutput): CompletionReader {
  const { tokenizer, stopTokenIds, tools, syntax, reasoning: tags, reasoningOpen: isOpen } = settings
  const isSpecial = (marker: string): boolean => {
    const id = tokenizer.tokenId(marker) ?? -1
    return tokenizer.specialIds.has(id) || stopTokenIds.has(id)
  }
  if (syntax?.channels) return createChannelReader({ output, syntax, tools, isSpecial })
  const used = tools.length === 0 ? null : syntax
  const next = used ? createCallReader({ output, syntax: used, tools, isSpecial }) : contentReader(output)
  const callMarkers = used?.opens ?? []
  return tags ? createReasoningReader({ output, tags, isOpen, callMarkers, isSpecial, next }) : next
}

/** A reader for which everything is content. */
function contentReader(output: CompletionOutput): CompletionReader {
  return {
    read({ text, special }) {
      if (!special) output.text('content', text)
    },
    finish: () => output.end('content'),
  }
}
