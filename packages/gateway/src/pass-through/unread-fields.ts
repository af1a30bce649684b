import { knownFields } from '../dialects/chat-completions/known-fields.ts'
import { memberTexts } from '../dialects/member-text.ts'
import type { Fields } from '../dialects/read-fields.ts'

/** What the gateway reads of a Chat Completions request, or what its turn holds elsewhere. */
const read: ReadonlySet<string> = new Set(knownFields)

/** All other fields of a request, which `json` holds, each with its JSON as it was written; one that is `null` is none. */
export function unreadFields(request: Fields, json: string): Record<string, string> {
  const names = Object.keys(request).filter((name) => !read.has(name) && request[name] !== null)
  if (names.length === 0) return {}
  const texts = memberTexts(json)
  // A request may have a field `__proto__`, which must not set the prototype.
  return Object.fromEntries(names.map((name) => [name, texts.get(name) ?? 'null']))
}
