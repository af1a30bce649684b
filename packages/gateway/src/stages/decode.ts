import { isUtf8 } from 'node:buffer'
import type { Dialect, ModelCall } from '../call.ts'
import type { ResponseMemory } from '../dialects/responses/memory.ts'
import { badRequest } from '../failure.ts'

/** The bytes of a request as a model call. Throws GATEWAY_BAD_REQUEST or GATEWAY_INPUT_UNSUPPORTED. */
export function decode(dialect: Dialect, body: Buffer, memory: ResponseMemory): ModelCall {
  if (!isUtf8(body)) throw badRequest('The body is not valid UTF-8; send JSON encoded as UTF-8.')
  const json = body.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (error) {
    throw badRequest(`The body is not valid JSON: ${error instanceof Error ? error.message : error}. Send a JSON object.`)
  }
  return dialect.decode(value, json, memory)
}
