import type { Dialect } from '../call.ts'
import { badRequest, checkMethod } from '../failure.ts'
import { messages } from './messages/index.ts'
import { responses } from './responses/index.ts'
import { type ResponseMemory, wholeJson } from './responses/memory.ts'

/** A request of an agent that samples nothing. */
export interface SideRequest {
  readonly method: string
  /** Path after `/v1`. */
  readonly path: string
  readonly memory: ResponseMemory
  /** Counts the tokens of the prompt that its body would have as a call. */
  readonly countTokens: (dialect: Dialect) => Promise<number>
}

function storedResponse({ path, method, memory }: SideRequest): string {
  const id = path.slice('/responses/'.length)
  const stored = memory.get(id)
  if (!stored) {
    const message = `Response "${id.slice(0, 100)}" is not kept here; only an agent's own answers are, and the oldest are dropped.`
    throw badRequest(message, null, 404, 'response_not_found')
  }
  checkMethod(path, method, ['GET', 'HEAD', 'DELETE'])
  if (method !== 'DELETE') return wholeJson(stored)
  memory.delete(id)
  return JSON.stringify({ id, object: 'response', deleted: true })
}

type Serve = (request: SideRequest) => string | Promise<string>

async function count(dialect: Dialect, { path, method, countTokens }: SideRequest): Promise<number> {
  checkMethod(path, method, ['POST'])
  return await countTokens(dialect)
}

const counts: Readonly<Record<string, Serve>> = {
  '/messages/count_tokens': async (request) => JSON.stringify({ input_tokens: await count(messages, request) }),
  '/responses/input_tokens': async (request) =>
    JSON.stringify({ object: 'response.input_tokens', input_tokens: await count(responses, request) }),
}

/** Finds how to serve a path that samples nothing: a function that returns the JSON of the answer; `null` for other paths. */
export function sideRequest(path: string): Serve | null {
  const counted = Object.hasOwn(counts, path) ? counts[path] : undefined
  return counted ?? (/^\/responses\/[^/]+$/.test(path) ? storedResponse : null)
}
