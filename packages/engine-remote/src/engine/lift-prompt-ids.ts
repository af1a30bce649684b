import { createKnownPrompt, type KnownPrompt } from './known-prompt.ts'

/** The ids of a prompt apart from the rest of an answer: a list of 25,000 costs JSON.parse more than all else. */
export interface LiftedAnswer {
  /** `null` where the answer has no such list. */
  readonly promptTokenIds: Int32Array | null
  /** How many of them are all that were known. */
  readonly repeated: number
  /** The answer as text, with `null` in place of the list. */
  readonly text: string
}

// In a string of JSON a quote has a backslash before it: where these bytes stand, they are a name.
const names = ['"prompt_token_ids":[', '"prompt_token_ids": ['].map((name) => Buffer.from(name))
const close = 0x5d

const nothing = Buffer.from('null')

/** The text with `null` for what stands from `start` to `end`, in one piece: of a text put together every look at a character costs more. */
function withNull(bytes: Buffer, start: number, end: number): string {
  const behind = start + nothing.length
  const whole = Buffer.allocUnsafe(behind + bytes.length - end)
  bytes.copy(whole, 0, 0, start)
  nothing.copy(whole, start)
  bytes.copy(whole, behind, end)
  return whole.toString('utf8')
}

/** Takes the first list of prompt ids out of the bytes of an answer, JSON or server-sent events; it is the known prompt then. */
export function liftPromptIds(body: Uint8Array, known: KnownPrompt = createKnownPrompt()): LiftedAnswer {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  for (const name of names) {
    const at = bytes.indexOf(name)
    if (at < 0) continue
    const start = at + name.length
    const end = bytes.indexOf(close, start)
    const read = end < 0 ? null : known.read(bytes, start, end)
    if (!read) break
    return { promptTokenIds: read.ids, repeated: read.repeated, text: withNull(bytes, start - 1, end + 1) }
  }
  return { promptTokenIds: null, repeated: 0, text: bytes.toString('utf8') }
}
