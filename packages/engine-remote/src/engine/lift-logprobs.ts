const list = '"logprobs":{"content":['
const token = '{"token":"'
const logprob = '"logprob":'
const bytes = ',"bytes":'
const ending = ',"top_logprobs":[]}'
const comma = 0x2c

/** Index behind a list of whole numbers or `null` at `start`; -1 for anything else. */
function endOfBytes(text: string, start: number): number {
  if (text.startsWith('null', start)) return start + 4
  if (text[start] !== '[') return -1
  let at = start + 1
  for (let code = text.charCodeAt(at); (code >= 0x30 && code <= 0x39) || code === comma; code = text.charCodeAt(at)) at++
  return text[at] === ']' ? at + 1 : -1
}

/** The numbers, behind commas, of a list that begins at `start`, and where the object around it ends; `null` where it is written in another way. */
export function readLogprobs(text: string, start: number): { readonly values: string; readonly end: number } | null {
  let values = ''
  let at = start
  for (;;) {
    if (!text.startsWith(token, at)) return null
    // In a string of JSON a quote has a backslash before it: where these bytes stand, they are a name.
    const name = text.indexOf(logprob, at + token.length)
    const from = name + logprob.length
    const to = name < 0 ? -1 : text.indexOf(bytes, from)
    if (to < 0 || to - from > 32) return null
    values += values === '' ? text.slice(from, to) : `,${text.slice(from, to)}`
    const end = endOfBytes(text, to + bytes.length)
    if (end < 0 || !text.startsWith(ending, end)) return null
    at = end + ending.length + 1
    if (text.charCodeAt(at - 1) === comma) continue
    return text.startsWith(']}', at - 1) ? { values, end: at + 1 } : null
  }
}

/**
 * An answer with `"logprobs":{"values":[…]}` for each `"logprobs":{"content":[…]}` as vLLM 0.32 and SGLang 0.5 write it where no
 * alternatives were asked for: an object for each token costs JSON.parse more than all else. What is written otherwise stays.
 */
export function liftLogprobs(text: string): string {
  let at = text.indexOf(list)
  if (at < 0) return text
  let lifted = ''
  let from = 0
  while (at >= 0) {
    const found = readLogprobs(text, at + list.length)
    if (found) {
      lifted += `${text.slice(from, at)}"logprobs":{"values":[${found.values}]}`
      from = found.end
    }
    at = text.indexOf(list, found ? from : at + list.length)
  }
  return from === 0 ? text : lifted + text.slice(from)
}
