import type { ChatModel, CompletionDelta, ParsedCompletion, PreparedPrompt } from '@aworld-train/chat'
import type { FinishReason } from '@aworld-train/protocol'
import type { ModelCall } from '../call.ts'

export interface ParseOptions {
  readonly chat: ChatModel
  readonly call: ModelCall
  readonly prepared: PreparedPrompt
  readonly stop: readonly string[]
  readonly mintToolCallId: (index: number) => string
}

/** The parser of one completion, fed piece by piece where somebody waits for the text, else at the end. */
export interface CompletionReader {
  /** What the piece lets go; nothing where nobody waits. */
  read(tokenIds: Int32Array): readonly CompletionDelta[]
  /** A stop string was met. */
  stopped(): boolean
  finish(tokenIds: Int32Array, finishReason: FinishReason): ParsedCompletion
}

export function createCompletionReader({ chat, call, prepared, stop, mintToolCallId }: ParseOptions): CompletionReader {
  const tools = call.toolChoice.kind === 'none' ? [] : call.tools
  const parser = chat.createCompletionParser({ tools, prompt: prepared, stop, mintToolCallId })
  const live = call.stream || stop.length > 0
  return {
    read: (tokenIds) => (live ? parser.push(tokenIds) : []),
    stopped: () => parser.stopped,
    finish(tokenIds, { unified }) {
      if (!live) parser.push(tokenIds)
      return parser.finish({ unified })
    },
  }
}
