import type { ModelCall } from '../call.ts'
import { badRequest } from '../failure.ts'
import { decode } from '../stages/decode.ts'
import { messages } from './messages/index.ts'
import { responses } from './responses/index.ts'
import { type ResponseMemory, wholeJson } from './responses/memory.ts'

/** A request of an agent that samples nothing. */
export interface SideRequest {
  readonly method: string
  /** Path behind `/v1`. */
  readonly path: string
  readonly readBody: () => Promise<Buffer>
  readonly memory: ResponseMemory
  /** Length of the prompt that a call would have. */
  readonly countTokens: (call: ModelCall) => Promise<number>
}

function storedResponse({ path, method, memory }: SideRequest): string {
  const id = path.slice('/responses/'.length)
  const stored = memory.get(id)
  if (!stored) {
    const message = `Response "${id.slice(0, 100)}" is not kept here; only an agent's own answers are, and the oldest are dropped.`
    throw badRequest(message, null, 404, 'response_not_found')
  }
  if (method === 'GET') return wholeJson(stored)
  memory.delete(id)
  return JSON.stringify({ id, object: 'response', deleted: true })
}

type Serve = (request: SideRequest) => string | Promise<string>

const counts: Readonly<Record<string, Serve>> = {
  '/messages/count_tokens': async ({ readBody, memory, countTokens }) =>
    JSON.stringify({ input_tokens: await countTokens(decode(messages, await readBody(), memory)) }),
  '/responses/input_tokens': async ({ readBody, memory, countTokens }) =>
    JSON.stringify({ object: 'response.input_tokens', input_tokens: await countTokens(decode(responses, await readBody(), memory)) }),
}

/** How a path is served where it samples nothing: the JSON of the answer; `null` for paths that are no such request. */
export function sideRequest(path: string, method: string): Serve | null {
  if (method === 'POST') return Object.hasOwn(counts, path) ? (counts[path] ?? null) : null
  return (method === 'GET' || method === 'DELETE') && /^\/responses\/[^/]+$/.test(path) ? storedResponse : null
}
