import type { ChatModel, CompletionDelta, ParsedCompletion, PreparedPrompt } from '@aworld-train/chat'
import type { FinishReason } from '@aworld-train/core'
import type { ModelCall } from '../call.ts'
import { createCallFilter } from './narrow-calls.ts'

export interface ParseOptions {
  readonly chat: ChatModel
  readonly call: ModelCall
  readonly prepared: PreparedPrompt
  readonly stop: readonly string[]
  readonly mintToolCallId: (index: number) => string
}

/** A parsed completion, with the agent's stop string that ended it. */
export interface ReadCompletion extends ParsedCompletion {
  readonly stopSequence?: string | undefined
}

/** The parser of one completion. It is fed piece by piece if somebody waits for the text, else at the end. */
export interface TurnParser {
  /** Returns the deltas that a piece releases; none if nobody waits for the text. */
  read(tokenIds: Int32Array): readonly CompletionDelta[]
  /** Whether a stop string was found. */
  stopped(): boolean
  finish(tokenIds: Int32Array, finishReason: FinishReason): ReadCompletion
}

/** The string of `stop` that occurs first in `text`. */
function firstStop(text: string, stop: readonly string[]): string | undefined {
  const found = stop.map((stopText) => ({ stopText, at: text.indexOf(stopText) })).filter(({ at }) => at >= 0)
  return found.sort((left, right) => left.at - right.at)[0]?.stopText
}

export function createTurnParser({ chat, call, prepared, stop, mintToolCallId }: ParseOptions): TurnParser {
  const tools = call.toolChoice.kind === 'none' ? [] : call.tools
  const parser = chat.createCompletionParser({ tools, prompt: prepared, stop, mintToolCallId })
  const filter = createCallFilter(call.toolChoice)
  const live = call.stream || stop.length > 0
  return {
    read: (tokenIds) => (live ? filter.deltas(parser.push(tokenIds)) : []),
    stopped: () => parser.stopped,
    finish(tokenIds, { unified }) {
      if (!live) parser.push(tokenIds)
      const parsed = parser.finish({ unified })
      const completion = filter.completion({ ...parsed, deltas: filter.deltas(parsed.deltas) })
      if (!parser.stopped) return completion
      return { ...completion, stopSequence: firstStop(chat.decode(tokenIds, { skipSpecialTokens: false }), call.stop) }
    },
  }
}
