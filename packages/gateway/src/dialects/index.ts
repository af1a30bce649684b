import type { IncomingHttpHeaders } from 'node:http'
import type { Dialect } from '../call.ts'
import { chatCompletions } from './chat-completions/index.ts'
import { messages } from './messages/index.ts'
import { responses } from './responses/index.ts'

/** Every API that the gateway speaks, by its path after `/v1`. */
export const dialects: ReadonlyMap<string, Dialect> = new Map(
  [chatCompletions, responses, messages].map((dialect) => [dialect.path, dialect]),
)

/** Finds the dialect of a path, which may lie below the dialect's own path. For other paths the client's headers decide. */
export function dialectOf(path: string, headers: IncomingHttpHeaders): Dialect {
  const exact = dialects.get(path)
  if (exact) return exact
  for (const dialect of dialects.values()) if (path.startsWith(`${dialect.path}/`)) return dialect
  return headers['anthropic-version'] === undefined && headers['x-api-key'] === undefined ? chatCompletions : messages
}
