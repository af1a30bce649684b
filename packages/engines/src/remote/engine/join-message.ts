import type { Message, ToolCall } from '@aworld-train/core'

/** A tool call, or in a stream a piece of one. */
export interface WireToolCall {
  readonly index?: number | null
  readonly id?: string | null
  readonly function?: { readonly name?: string | null; readonly arguments?: string | null } | null
}

export interface WireMessage {
  readonly content?: string | null
  readonly reasoning?: string | null
  readonly reasoning_content?: string | null
  readonly tool_calls?: readonly WireToolCall[] | null
}

/** Joins the pieces of a stream, or takes a whole message. */
export function createMessage() {
  const calls: { id: string; name: string; arguments: string }[] = []
  let content: string | null = null
  let reasoning: string | undefined
  return {
    add(piece: WireMessage): void {
      if (typeof piece.content === 'string') content = (content ?? '') + piece.content
      const thought = piece.reasoning ?? piece.reasoning_content
      if (typeof thought === 'string' && thought !== '') reasoning = (reasoning ?? '') + thought
      for (const [position, call] of (piece.tool_calls ?? []).entries()) {
        const index = call.index ?? position
        calls[index] ??= { id: '', name: '', arguments: '' }
        const joined = calls[index]
        if (call.id) joined.id = call.id
        if (call.function?.name) joined.name += call.function.name
        if (call.function?.arguments) joined.arguments += call.function.arguments
      }
    },
    finish(): Message {
      const toolCalls: ToolCall[] = calls.filter((call) => call !== undefined)
      return { role: 'assistant', content, ...(reasoning !== undefined && { reasoning }), ...(toolCalls.length > 0 && { toolCalls }) }
    },
  }
}
