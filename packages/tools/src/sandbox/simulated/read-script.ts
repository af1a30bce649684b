import { parse, type ScriptNode } from 'just-bash'
import { type Rewriting, rewrite } from './rewrite.ts'

/** Reads a script as bash does, and throws for one that is not simulated. */
export const readScript = (text: string, rewriting: Rewriting): ScriptNode => rewrite(parse(markArithmetic(text)), rewriting)

/**
 * Writes every command `((…))` as `__let $((…))`. The simulation takes `((x -= 1))` for subshells, and reads `((x >= 1))` as a redirection;
 * of `$((…))` it reads both.
 */
export function markArithmetic(text: string): string {
  let marked = ''
  let copied = 0
  const documents: string[] = []
  let at = 0
  while (at < text.length) {
    if (text[at] === '\n' && documents.length > 0) {
      at = endOfDocuments(text, at + 1, documents.splice(0))
      continue
    }
    documentStart.lastIndex = at
    const document = documentStart.exec(text)
    if (document) documents.push(`${document[1]} ${document[2]!.replaceAll(/['"\\]/g, '')}`)
    if (text.startsWith('((', at) && isWordStart(text, at) && !/\bfor\s*$/.test(text.slice(Math.max(0, at - 16), at))) {
      const end = endOf(text, at)
      if (text[end - 2] === ')' && endOf(text, at + 1) === end - 1) {
        marked += `${text.slice(copied, at)}__let $`
        copied = at
        at = end
        continue
      }
    }
    at = document ? at + document[0].length : skip(text, at)
  }
  return marked + text.slice(copied)
}

/** `<<E`, `<<-E` and `<<'E'`, but not `<<<`. */
const documentStart = /(?<!<)<<(-?)(?!<)[ \t]*((?:'[^'\n]*'|"[^"\n]*"|\\.|[^\s;&|<>()'"\\])+)/y

const isWordStart = (text: string, at: number) => at === 0 || /[\s;&|(){!0-9]/.test(text[at - 1]!)

/** The position behind the here-documents that begin at a line. */
function endOfDocuments(text: string, start: number, delimiters: readonly string[]): number {
  let at = start
  for (const each of delimiters) {
    const [tabs, delimiter] = [each.startsWith('-'), each.slice(each.indexOf(' ') + 1)]
    while (at < text.length) {
      const newline = text.indexOf('\n', at)
      const end = newline < 0 ? text.length : newline
      const line = text.slice(at, end)
      at = end + 1
      if ((tabs ? line.replace(/^\t+/, '') : line) === delimiter) break
    }
  }
  return Math.min(at, text.length)
}

/** The position behind what begins here: a quoted text, an expansion, a comment, or one character. */
function skip(text: string, at: number): number {
  const [first, second] = [text[at], text[at + 1]]
  if (first === '\\') return at + 2
  if (first === "'") return after(text.indexOf("'", at + 1), text)
  if (first === '$' && second === "'") return endOfQuote(text, at + 2, "'")
  if (first === '"' || first === '`') return endOfQuote(text, at + 1, first)
  if (first === '$' && (second === '(' || second === '{')) return endOf(text, at + 1)
  if (first === '#' && (at === 0 || /[\s;&|(]/.test(text[at - 1]!))) return after(text.indexOf('\n', at) - 1, text)
  return at + 1
}

const after = (found: number, text: string) => (found < 0 ? text.length : found + 1)

function endOfQuote(text: string, start: number, quote: string): number {
  let at = start
  while (at < text.length && text[at] !== quote)
    at = quote === '"' && text[at] === '$' ? skip(text, at) : text[at] === '\\' ? at + 2 : at + 1
  return Math.min(at + 1, text.length)
}

/** The position behind the bracket that closes the one at a position. */
function endOf(text: string, start: number): number {
  const [open, close] = text[start] === '{' ? ['{', '}'] : ['(', ')']
  let depth = 0
  let at = start
  while (at < text.length) {
    if (text[at] === open) depth++
    if (text[at] === close && --depth === 0) return at + 1
    at = text[at] === open || text[at] === close ? at + 1 : skip(text, at)
  }
  return text.length
}
