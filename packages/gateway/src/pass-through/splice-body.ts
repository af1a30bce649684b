import { badRequest } from '../failure.ts'

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Makes the bytes of a text, which are the same as long as the text is. */
export type ToBytes = (text: string) => Uint8Array

export function createToBytes(): ToBytes {
  let last = ''
  let bytes: Uint8Array = new Uint8Array(0)
  return (text) => {
    if (text !== last) {
      last = text
      bytes = Buffer.from(text)
    }
    return bytes
  }
}

/**
 * `body` with `members` put before its last brace, as pieces: the bytes before them are the client's own. A name that
 * stands twice counts the last time in the JSON readers of Python and V8. Throws GATEWAY_BAD_REQUEST where no object ends.
 */
export function spliceBody(body: Buffer, members: string, toBytes: ToBytes = Buffer.from): Uint8Array[] {
  let end = body.length - 1
  while (isSpace(body[end])) end--
  if (body[end] !== 0x7d) throw badRequest('The body is not a JSON object; send one, encoded as UTF-8.')
  let last = end - 1
  while (isSpace(body[last])) last--
  if (members === '') return [body]
  return [body.subarray(0, end), toBytes(body[last] === 0x7b ? `${members}}` : `,${members}}`)]
}
