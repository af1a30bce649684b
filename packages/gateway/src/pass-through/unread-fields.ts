import { knownFields } from '../dialects/chat-completions/known-fields.ts'
import { type ArraySpan, scanMembers } from '../json/scan-members.ts'

/** What the gateway reads of a Chat Completions request, or what its turn holds elsewhere. */
const read: ReadonlySet<string> = new Set(knownFields)

/** A name as JSON reads it; one that no reader could read stays as it is written. */
function nameOf(written: string): string {
  if (!/[\\\x80-\xff]/.test(written)) return written
  const text = Buffer.from(written, 'latin1').toString('utf8')
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text
  }
}

/**
 * All other fields of a request, which its server had as they are, each with its JSON as it was written; the last of equal names
 * counts, and one that is `null` is none. `text` are the bytes as Latin-1, in which `messages` have been found.
 */
export function unreadFields(bytes: Buffer, text: string, messages: ArraySpan | null): Record<string, string> {
  const fields = new Map<string, string>()
  for (const { name: written, start, end } of scanMembers(text, (name) => !read.has(name), messages)) {
    const name = nameOf(written)
    if (read.has(name)) continue
    const value = bytes.toString('utf8', start, end).trim()
    fields.delete(name)
    if (value !== 'null') fields.set(name, value)
  }
  // `__proto__` is a name like any other.
  return Object.fromEntries(fields)
}
