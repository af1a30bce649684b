import { knownFields } from '../dialects/chat-completions/known-fields.ts'
import { memberTexts } from '../dialects/member-text.ts'
import type { Fields } from '../dialects/read-fields.ts'

/** Fields of a Chat Completions request that the gateway reads, or that its turn keeps elsewhere. */
const read: ReadonlySet<string> = new Set(knownFields)

/** All other fields of the request in `json`, each with its JSON as it was written. A field that is `null` is left out. */
export function unreadFields(request: Fields, json: string): Record<string, string> {
  const names = Object.keys(request).filter((name) => !read.has(name) && request[name] !== null)
  if (names.length === 0) return {}
  const texts = memberTexts(json)
  // A request may have a field `__proto__`, which must not set the prototype.
  return Object.fromEntries(names.map((name) => [name, texts.get(name) ?? 'null']))
}
