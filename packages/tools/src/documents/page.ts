import { Unreadable } from './unreadable.ts'

export interface Page {
  readonly content: string
  readonly offset: number
  readonly total: number
  /** Start of the next page; null at the end. */
  readonly nextOffset: number | null
}

/** A piece of a text of at most `limit` characters. It ends at a line's end if one is near, and never within a character. */
export function pageOfText(file: string, text: string, { offset, limit }: { offset: number; limit: number }): Page {
  refuseBehindEnd(file, offset, text.length, 'characters')
  const start = isLowSurrogate(text, offset) ? offset - 1 : offset
  let end = Math.min(text.length, start + limit)
  if (end < text.length) {
    const lineEnd = text.lastIndexOf('\n', end - 1) + 1
    if (lineEnd > start + limit * 0.75) end = lineEnd
    else if (isLowSurrogate(text, end)) end = end - 1 > start ? end - 1 : end + 1
  }
  return { content: text.slice(start, end), offset: start, total: text.length, nextOffset: end < text.length ? end : null }
}

export interface PageOfParts {
  readonly parts: readonly string[]
  readonly offset: number
  readonly total: number
  readonly nextOffset: number | null
  readonly notices: readonly string[]
}

/** Some parts of a document, such as its pages or slides: at most `limit`, and as many as fit in `maxCharacters`, but at least one. */
export async function pageOfParts(
  file: string,
  document: { readonly unit: 'pages' | 'slides'; readonly total: number; part(index: number): string | Promise<string> },
  { offset, limit, maxCharacters }: { offset: number; limit: number; maxCharacters: number },
): Promise<PageOfParts> {
  refuseBehindEnd(file, offset, document.total, document.unit)
  const parts: string[] = []
  const notices: string[] = []
  let characters = 0
  let index = offset
  for (; index < document.total && parts.length < limit; index += 1) {
    let part = await document.part(index)
    if (parts.length > 0 && characters + part.length > maxCharacters) break
    if (part.length > maxCharacters) {
      notices.push(`One of the ${document.unit} is cut: ${part.length - maxCharacters} of its ${part.length} characters are left out.`)
      part = part.slice(0, maxCharacters)
    }
    parts.push(part)
    characters += part.length
  }
  return { parts, offset, total: document.total, nextOffset: index < document.total ? index : null, notices }
}

export function refuseBehindEnd(file: string, offset: number, total: number, unit: string): void {
  if (offset > 0 && offset >= total) throw new Unreadable(`Offset ${offset} is behind the end of ${file}, which has ${total} ${unit}.`)
}

function isLowSurrogate(text: string, index: number): boolean {
  const code = text.charCodeAt(index)
  return code >= 0xdc00 && code <= 0xdfff
}
