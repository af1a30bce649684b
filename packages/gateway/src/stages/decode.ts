import type { Dialect, ModelCall } from '../call.ts'
import type { ResponseMemory } from '../dialects/responses/memory.ts'
import { type BodyMemory, parseWhole, readJsonBody } from './read-json-body.ts'

/**
 * The bytes of a request as a model call; with `bodies`, what the agent's last request held already is not parsed again.
 * Throws GATEWAY_BAD_REQUEST or GATEWAY_INPUT_UNSUPPORTED.
 */
export function decode(dialect: Dialect, body: Buffer, memory: ResponseMemory, bodies?: BodyMemory): ModelCall {
  const { value, json, itemText } = bodies ? readJsonBody(body, dialect.historyField, bodies) : parseWhole(body)
  return dialect.decode(value, json, memory, itemText)
}
