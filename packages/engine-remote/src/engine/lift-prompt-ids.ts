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
  if (end === start) return { ids: new Int32Array(0), end }
  // An id takes two bytes at least, its comma included.
  const ids = new Int32Array(((end - start) >> 1) + 1)
  let count = 0
  let at = start
  while (at <= end) {
    while (bytes[at] === space) at++
    const first = at
    let value = 0
    let byte = bytes[at++]!
    for (let digit = byte - zero; digit >= 0 && digit <= 9; digit = byte - zero) {
      value = (Math.imul(value, 10) + digit) | 0
      byte = bytes[at++]!
    }
    const digits = at - 1 - first
    if (digits === 0 || digits > 9 || (byte !== comma && byte !== close) || (byte === comma && at > end)) return null
    ids[count++] = value
  }
  return { ids: ids.subarray(0, count), end }
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
