import type { Dialect, ModelCall } from '../call.ts'
import type { ResponseMemory } from '../dialects/responses/memory.ts'
import { parseBody } from './parse-body.ts'

/** Reads the bytes of a request as a model call. Throws GATEWAY_BAD_REQUEST or GATEWAY_INPUT_UNSUPPORTED. */
export function decode(dialect: Dialect, body: Buffer, memory: ResponseMemory): ModelCall {
  const { value, json } = parseBody(body)
  return dialect.decode(value, json, memory)
}
