export const quote = 0x22
const backslash = 0x5c

/** The place of a member in the text of its object. `start` and `end` are those of the value. */
export interface MemberSpan {
  readonly name: string
  readonly start: number
  readonly end: number
}

/** Index after the string that opens at `start`. */
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end > 0) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes++
    if (slashes % 2 === 0) return end + 1
    end = text.indexOf('"', end + 1)
  }
  return text.length
}

/**
 * Finds the members of the object in `text` without reading their values. It never throws: text that is no JSON object yields whatever
 * looks like members, or nothing. `text` may be bytes read as Latin-1; positions are then those of the bytes.
 */
export function scanMembers(text: string, isWanted: (name: string) => boolean): MemberSpan[] {
  const found: MemberSpan[] = []
  let depth = 0
  let name: string | null = null
  let start = -1
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === quote) {
      const end = endOfString(text, index)
      if (depth === 1 && start < 0) name = text.slice(index + 1, end - 1)
      index = end - 1
    } else if (code === 0x7b || code === 0x5b) {
      depth++
      if (depth === 1 && code === 0x5b) return found
    } else if (code === 0x3a && depth === 1 && start < 0) {
      start = index + 1
    } else if ((code === 0x2c && depth === 1) || code === 0x7d || code === 0x5d) {
      if (depth === 1 && start >= 0) {
        if (name !== null && isWanted(name)) found.push({ name, start, end: index })
        name = null
        start = -1
      }
      if (code !== 0x2c) depth--
      if (depth === 0) return found
    }
  }
  return found
}
