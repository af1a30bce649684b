import { TrainError } from '../protocol/errors.ts'

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/**
 * Inserts `members` before the last brace of the JSON object `body`; all other bytes stay. Of a name that occurs twice, the JSON readers of
 * Python and V8 take the last. Throws GATEWAY_BAD_REQUEST if no object ends.
 */
export function spliceMembers(body: Buffer, members: string): Buffer {
  let end = body.length - 1
  while (isSpace(body[end])) end--
  if (body[end] !== 0x7d) {
    const message = 'The body is not a JSON object; send one, encoded as UTF-8.'
    throw new TrainError('GATEWAY_BAD_REQUEST', message, { details: { param: null, status: 400 } })
  }
  if (members === '') return body
  let last = end - 1
  while (isSpace(body[last])) last--
  return Buffer.concat([body.subarray(0, end), Buffer.from(body[last] === 0x7b ? `${members}}` : `,${members}}`)])
}
