import type { Dialect } from '../call.ts'
import { chatCompletions } from './chat-completions/index.ts'
import { messages } from './messages/index.ts'
import { responses } from './responses/index.ts'

/** Every API the gateway speaks, by its path behind `/v1`. */
export const dialects: ReadonlyMap<string, Dialect> = new Map(
  [chatCompletions, responses, messages].map((dialect) => [dialect.path, dialect]),
)
