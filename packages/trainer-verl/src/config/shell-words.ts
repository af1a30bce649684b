/** Stands where a line was continued inside a word, so that words run together by a missing space can be told apart. */
export const joint = '\uE000'

/** A simple command of a script: its words as written, quotes and all. */
export interface RawCommand {
  readonly words: readonly string[]
  readonly line: number
  /** What ended it: `\n`, `;`, `&&`, `||`, `|`, `&`. */
  readonly end: string
}

/** Cuts a shell script into simple commands; a sentence where a quote or a bracket is not closed. */
export function readCommands(text: string): RawCommand[] | string {
  const source = text.replaceAll('\r\n', '\n')
  const commands: RawCommand[] = []
  let words: string[] = []
  let word = ''
  let inWord = false
  let line = 1
  let startLine = 1
  const endWord = () => {
    if (inWord) words.push(word)
    word = ''
    inWord = false
  }
  const endCommand = (end: string) => {
    endWord()
    if (words.length > 0) commands.push({ words, line: startLine, end })
    words = []
  }
  for (let at = 0; at < source.length; ) {
    const character = source[at]!
    const span = spanAt(source, at)
    if (span === null) return `line ${line}: a quote or bracket that begins here is not closed.`
    if (!inWord && words.length === 0) startLine = line
    if (source.startsWith('\\\n', at)) {
      if (inWord) word += joint
      line++
      at += 2
    } else if (span > 1) {
      const part = source.slice(at, at + span)
      word += part
      inWord = true
      line += part.split('\n').length - 1
      at += span
    } else if (character === '(' && /^\w+\+?=$/.test(word)) {
      const end = closing(source, at, '(', ')')
      if (end === null) return `line ${line}: the list that begins here is not closed.`
      const part = source.slice(at, end)
      word += part
      line += part.split('\n').length - 1
      at = end
    } else if (character === '#' && !inWord) {
      while (at < source.length && source[at] !== '\n') at++
    } else if (/[ \t]/.test(character)) {
      endWord()
      at++
    } else if (/[\n;|&]/.test(character)) {
      const redirection = character === '&' && (/[<>]$/.test(word) || source[at + 1] === '>')
      if (redirection) {
        word += character
        inWord = true
        at++
        continue
      }
      const end = /^(&&|\|\||;;|\|&)/.exec(source.slice(at, at + 2))?.[0] ?? character
      endCommand(end)
      if (character === '\n') line++
      at += end.length
    } else {
      word += character
      inWord = true
      at++
    }
  }
  endCommand('\n')
  return commands
}

/** Length of what stands together at a place: a quoted text, `${…}`, `$(…)`, an escaped character; 1 for anything else, `null` unclosed. */
export function spanAt(source: string, at: number): number | null {
  const character = source[at]!
  if (character === '\\') return 2
  if (character === "'") {
    const end = source.indexOf("'", at + 1)
    return end < 0 ? null : end + 1 - at
  }
  if (character === '"') {
    for (let end = at + 1; end < source.length; ) {
      if (source[end] === '"') return end + 1 - at
      const inner = source[end] === "'" ? 1 : spanAt(source, end)
      if (inner === null) return null
      end += inner
    }
    return null
  }
  if (source.startsWith('${', at)) return lengthTo(closing(source, at + 1, '{', '}'), at)
  if (source.startsWith('$(', at)) return lengthTo(closing(source, at + 1, '(', ')'), at)
  return 1
}

const lengthTo = (end: number | null, at: number) => (end === null ? null : end - at)

/** Position behind the bracket that closes the one at `at`. */
function closing(source: string, at: number, open: string, close: string): number | null {
  let depth = 0
  for (let end = at; end < source.length; ) {
    const character = source[end]!
    if (character === open) depth++
    if (character === close && --depth === 0) return end + 1
    const inner = character === open || character === close ? 1 : spanAt(source, end)
    if (inner === null) return null
    end += inner
  }
  return null
}
