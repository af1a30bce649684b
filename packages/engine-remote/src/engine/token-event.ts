import { readLogprobs } from './lift-logprobs.ts'

/** One sampled token of a stream. */
export interface TokenEvent {
  /** As it stands in JSON, without its quotes. */
  readonly content: string
  readonly logprob: number
  readonly id: number
}

const choice = '"choices":[{"index":0,"delta":{"content":"'
const logprobs = '},"logprobs":{"content":['
const ids = ',"finish_reason":null,"token_ids":['
const closing = ']}]}'
const quote = '"'
const backslash = 0x5c

/** Index of the quote that ends the string which has begun before `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf(quote, start)
  while (end > 0) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes++
    if (slashes % 2 === 0) return end
    end = text.indexOf(quote, end + 1)
  }
  return -1
}

/** What the text of the events begins with whose members before the choices are `head`. */
export const prefixOf = (head: string): string => `{${head}${choice}`

/**
 * The event from `start` to `end` where it is a token in the middle of an answer, as vLLM 0.32 writes it; `null` for any other,
 * which JSON.parse reads at twice the cost. `prefix` comes from `prefixOf`.
 */
export function readTokenEvent(text: string, start: number, end: number, prefix: string): TokenEvent | null {
  const contentAt = start + prefix.length
  // Compared as wholes: startsWith looks at one character after the other.
  if (text.slice(start, contentAt) !== prefix) return null
  const contentEnd = endOfString(text, contentAt)
  if (contentEnd < 0 || !text.startsWith(logprobs, contentEnd + 1)) return null
  const list = readLogprobs(text, contentEnd + 1 + logprobs.length)
  if (!list || !text.startsWith(ids, list.end)) return null
  const idAt = list.end + ids.length
  const idEnd = end - closing.length
  if (idEnd <= idAt || idEnd - idAt > 9 || !text.startsWith(closing, idEnd)) return null
  let id = 0
  for (let at = idAt; at < idEnd; at++) {
    const digit = text.charCodeAt(at) - 0x30
    if (!(digit >= 0 && digit <= 9)) return null
    id = id * 10 + digit
  }
  const logprob = Number(list.values)
  return Number.isFinite(logprob) ? { content: text.slice(contentAt, contentEnd), logprob, id } : null
}
