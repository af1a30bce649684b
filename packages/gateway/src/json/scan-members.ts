export const quote = 0x22
const backslash = 0x5c

/** Where a member of an object stands in its text; `start` and `end` are those of the value. */
export interface MemberSpan {
  readonly name: string
  readonly start: number
  readonly end: number
}

/** Index behind the string that opens at `start`. */
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

/** Where an array stands in a text, its brackets included, and its elements. */
export interface ArraySpan {
  readonly start: number
  readonly end: number
  readonly elements: readonly (readonly [number, number])[]
}

/**
 * The members of the object in `text`, without reading their values: strings are jumped over, so that a body costs as much as
 * it has strings, and so is the value `known`, whose end is known. Text that is no JSON object yields what looks like members,
 * or nothing; it never throws. `text` may be bytes read as Latin-1: positions are those of the bytes then.
 */
export function scanMembers(
  text: string,
  wanted: (name: string) => boolean,
  known?: Pick<ArraySpan, 'start' | 'end'> | null,
): MemberSpan[] {
  const found: MemberSpan[] = []
  const knownStart = known?.start ?? -1
  let depth = 0
  let name: string | null = null
  let start = -1
  for (let index = 0; index < text.length; index++) {
    if (index === knownStart) index = known!.end
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
        if (name !== null && wanted(name)) found.push({ name, start, end: index })
        name = null
        start = -1
      }
      if (code !== 0x2c) depth--
      if (depth === 0) return found
    }
  }
  return found
}

/** The array that opens at `start`; `null` where it does not close. */
function scanElements(text: string, start: number): ArraySpan | null {
  const elements: [number, number][] = []
  let depth = 0
  let from = start + 1
  let empty = true
  for (let index = start; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === quote) {
      index = endOfString(text, index) - 1
      empty = false
    } else if (code === 0x7b || code === 0x5b) {
      if (depth++ > 0) empty = false
    } else if (code === 0x2c && depth === 1) {
      elements.push([from, index])
      from = index + 1
    } else if (code === 0x7d || code === 0x5d) {
      if (--depth > 0) continue
      if (!empty) elements.push([from, index])
      return { start, elements, end: index + 1 }
    } else if (depth === 1 && code > 0x20) empty = false
  }
  return null
}

/** As `findArrayMember`, of the array only its elements. */
export function scanArrayMember(text: string, name: string): ArraySpan['elements'] | null {
  return findArrayMember(text, name)?.elements ?? null
}

/** Where the last member `name` of an object stands, if that is an array; `null` where it is missing or another value. */
export function findArrayMember(text: string, name: string): ArraySpan | null {
  const key = JSON.stringify(name)
  // The first place is most often the only one; where it is not the member, or not the last, every member is looked at.
  const first = text.indexOf(key)
  if (first < 0) return null
  const only = text.slice(0, first).trimEnd()
  if (only === '{' || (only.endsWith(',') && !/[{[]/.test(only.slice(only.indexOf('{') + 1)))) {
    const colon = text.slice(first + key.length, first + key.length + 16).match(/^\s*:\s*\[/)
    const found = colon && scanElements(text, first + key.length + colon[0].length - 1)
    if (found && !text.includes(key, found.end)) return found
  }
  const span = scanMembers(text, (each) => each === name).at(-1)
  if (!span) return null
  const open = span.start + text.slice(span.start, span.end).search(/\S/)
  return text[open] === '[' ? scanElements(text, open) : null
}
