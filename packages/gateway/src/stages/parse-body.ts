import { isUtf8 } from 'node:buffer'
import { badRequest } from '../failure.ts'

/** A parsed body, with its text. */
export interface ParsedBody {
  readonly value: unknown
  readonly json: string
}

/** Parses a body of JSON in UTF-8. Throws GATEWAY_BAD_REQUEST. */
export function parseBody(bytes: Buffer): ParsedBody {
  if (!isUtf8(bytes)) throw badRequest('The body is not valid UTF-8; send JSON encoded as UTF-8.')
  const json = bytes.toString('utf8')
  try {
    return { value: JSON.parse(json), json }
  } catch (error) {
    throw badRequest(`The body is not valid JSON: ${error instanceof Error ? error.message : error}. Send a JSON object.`)
  }
}
