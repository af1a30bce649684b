/** The ids of a prompt apart from the rest of an answer: a list of 25,000 costs JSON.parse more than all else. */
export interface LiftedAnswer {
  /** `null` where the answer has no such list. */
  readonly promptTokenIds: Int32Array | null
  /** The answer as text, with `null` in place of the list. */
  readonly text: string
}

// In a string of JSON a quote has a backslash before it: where these bytes stand, they are a name.
const names = ['"prompt_token_ids":[', '"prompt_token_ids": ['].map((name) => Buffer.from(name))
const comma = 0x2c
const close = 0x5d
const space = 0x20
const zero = 0x30

/** Whole numbers from `start` to the bracket that closes their list; `null` for anything else. */
function readIds(bytes: Buffer, start: number): { readonly ids: Int32Array; readonly end: number } | null {
  const end = bytes.indexOf(close, start)
  if (end < 0) return null
  // An id takes two bytes at least, its comma included.
  const ids = new Int32Array(((end - start) >> 1) + 1)
  let count = 0
  let value = 0
  let digits = 0
  for (let at = start; at <= end; at++) {
    const byte = bytes[at]!
    const digit = byte - zero
    if (digit >= 0 && digit <= 9) {
      value = value * 10 + digit
      digits++
    } else if (byte === comma || byte === close) {
      if (digits === 0 || digits > 9) return at === end && count === 0 && digits === 0 ? { ids: new Int32Array(0), end } : null
      ids[count++] = value
      value = 0
      digits = 0
    } else if (byte !== space || digits > 0) return null
  }
  return { ids: ids.slice(0, count), end }
}

/** Takes the first list of prompt ids out of the bytes of an answer, JSON or server-sent events. */
export function liftPromptIds(body: Uint8Array): LiftedAnswer {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  for (const name of names) {
    const at = bytes.indexOf(name)
    if (at < 0) continue
    const start = at + name.length
    const read = readIds(bytes, start)
    if (!read) break
    const text = `${bytes.toString('utf8', 0, start - 1)}null${bytes.toString('utf8', read.end + 1)}`
    return { promptTokenIds: read.ids, text }
  }
  return { promptTokenIds: null, text: bytes.toString('utf8') }
}
