import { createHash } from 'node:crypto'
import type { ChatModel } from '@aworld-train/chat'
import type { Message } from '@aworld-train/core'
import type { ToolAnswerCut } from '../models/routes.ts'

/** Most bytes of text in one token. A longer text is cut without counting all of its tokens. */
const bytesPerToken = 16
/** Number of cut answers that are remembered, because an agent sends its history with every call. */
const maxRemembered = 1024

/** Cuts tool answers to at most `maxTokens`. The same text is always cut in the same way, so that the next turn continues this one. */
export function createToolAnswerCutter(
  { maxTokens, cut }: ToolAnswerCut,
  chat: () => Pick<ChatModel, 'encode' | 'decode'>,
): (messages: readonly Message[]) => readonly Message[] {
  if (maxTokens === null) return (messages) => messages
  const remembered = new Map<string, string>()
  const cutOnce = (text: string): string => {
    const key = createHash('sha256').update(text).digest('base64')
    const earlier = remembered.get(key)
    if (earlier !== undefined) return earlier
    const made = cutText(text, maxTokens, cut, chat())
    if (remembered.size >= maxRemembered) remembered.delete(remembered.keys().next().value!)
    remembered.set(key, made)
    return made
  }
  return (messages) =>
    messages.map((message) =>
      // A token has at least one byte.
      message.role === 'tool' && message.content !== null && Buffer.byteLength(message.content) > maxTokens
        ? { ...message, content: cutOnce(message.content) }
        : message,
    )
}

function cutText(text: string, maxTokens: number, cut: ToolAnswerCut['cut'], chat: Pick<ChatModel, 'encode' | 'decode'>): string {
  const longest = bytesPerToken * maxTokens
  const isShort = text.length <= 2 * longest
  const [head, tail] = isShort ? [text, text] : [text.slice(0, longest), text.slice(-longest)]
  const headIds = chat.encode(head)
  if (isShort && headIds.length <= maxTokens) return text
  const tailIds = isShort ? headIds : chat.encode(tail)
  const decode = (ids: Int32Array) => chat.decode(ids)
  // Ids on both sides of a cut may merge into others, so the remaining text is counted again.
  for (let kept = maxTokens; ; ) {
    const first = cut === 'head' ? 0 : cut === 'tail' ? kept : Math.ceil(kept / 2)
    // An incomplete character at a cut is left out.
    const begin = decode(headIds.subarray(0, first)).replace(/\uFFFD+$/, '')
    const end = first === kept ? '' : decode(tailIds.subarray(tailIds.length - (kept - first))).replace(/^\uFFFD+/, '')
    const made = [begin, `[${text.length - begin.length - end.length} characters left out]`, end].filter((part) => part !== '').join('\n')
    const over = chat.encode(made).length - maxTokens
    if (over <= 0 || kept === 0) return made
    kept = Math.max(0, kept - over)
  }
}
