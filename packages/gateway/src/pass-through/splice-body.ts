import { badRequest } from '../failure.ts'

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/**
 * `body` with `members` put before its last brace, as pieces: the bytes before them are the client's own. A name that
 * stands twice counts the last time in the JSON readers of Python and V8. Throws GATEWAY_BAD_REQUEST where no object ends.
 */
export function spliceBody(body: Buffer, members: string): Uint8Array[] {
  let end = body.length - 1
  while (isSpace(body[end])) end--
  if (body[end] !== 0x7d) throw badRequest('The body is not a JSON object; send one, encoded as UTF-8.')
  let last = end - 1
  while (isSpace(body[last])) last--
  if (members === '') return [body]
  return [body.subarray(0, end), Buffer.from(body[last] === 0x7b ? `${members}}` : `,${members}}`)]
}
