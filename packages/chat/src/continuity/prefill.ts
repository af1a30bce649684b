import { type Message, TrainError } from '@aworld-train/core'
import { pythonStrip } from '../render/python-text.ts'

/** A trailing assistant message: the beginning of the answer, which the policy continues. */
export interface Prefill extends Message {
  readonly content: string
}

/** Splits off a trailing assistant message, if there is one. */
export function splitPrefill(messages: readonly Message[]): { readonly messages: readonly Message[]; readonly prefill: Prefill | null } {
  const last = messages.at(-1)
  if (!last) throw new TrainError('GATEWAY_BAD_REQUEST', 'The request has no messages; send at least one.')
  if (last.role !== 'assistant') return { messages, prefill: null }
  if (last.toolCalls?.length) {
    const what = `The conversation ends with a call of ${last.toolCalls[0]!.name} that has no result`
    throw new TrainError('GATEWAY_BAD_REQUEST', `${what}; send its result as a tool message.`)
  }
  if (messages.length === 1) throw new TrainError('GATEWAY_BAD_REQUEST', 'The only message is of the assistant; send a user message first.')
  return { messages: messages.slice(0, -1), prefill: { ...last, content: last.content ?? '' } }
}

export const withPrefill = (messages: readonly Message[], prefill: Prefill | null): readonly Message[] =>
  prefill === null ? messages : [...messages, prefill]

/** The whole message that began with `prefill`. */
export function completed(prefill: Prefill | null, message: Message): Message {
  if (prefill === null) return message
  const reasoning = (prefill.reasoning ?? '') + (message.reasoning ?? '')
  const content = prefill.content === '' ? message.content : prefill.content + (message.content ?? '')
  return { ...message, content, ...(reasoning !== '' && { reasoning }) }
}

/** The prefill with `mark` and a space after its text. The space shows whether the template trims the message. */
export const withMarkBehind = (prefill: Prefill, mark: string): Message => ({ ...prefill, content: `${prefill.content}${mark} ` })

/**
 * Cuts a rendering that ends with `withMarkBehind(prefill, mark)` at the place where the policy goes on, as `continue_final_message` of
 * transformers does. `null` if the template leaves out or changes `text`, the text of the prefill.
 */
export function cutBehindPrefill(pieces: readonly string[], mark: string, text: string): string[] | null {
  const last = pieces.findLastIndex((piece) => piece.includes(mark))
  if (last < 0 || !pieces.join('').includes(pythonStrip(text, null, 'both'))) return null
  const end = pieces.slice(last).join('')
  const at = end.lastIndexOf(mark)
  const before = [...pieces.slice(0, last), end.slice(0, at)]
  if (end[at + mark.length] === ' ') return before
  let kept = ''
  while (kept === '' && before.length > 0) kept = pythonStrip(before.pop()!, null, 'right')
  return [...before, kept]
}
