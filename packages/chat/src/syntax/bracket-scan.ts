import type { BodyScan, BodyState } from './syntax.ts'

export interface BracketScanOptions {
  /** Texts that begin and end a string. The longest that fits is taken. */
  readonly quotes: readonly string[]
  /** Whether strings are as in Python: a backslash escapes the next character, and a string in single quotes ends with its line. */
  readonly escapes: boolean
  /** The beginning of a body. */
  readonly head: RegExp
  /** Text that may still become such a beginning. */
  readonly partialHead: RegExp
  /** Brackets that must close after the head. The next one is last. */
  readonly due: readonly string[]
}

const closers: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }
const deepest = 400
const longestHead = 512

/** Follows strings and brackets of literals that are not JSON. */
export function scanBrackets(options: BracketScanOptions): BodyScan {
  return new BracketScan(options)
}

class BracketScan implements BodyScan {
  readonly #options: BracketScanOptions
  readonly #due: string[]
  #state: BodyState = 'open'
  #quote: string | null = null
  #inHead = true
  #pending = ''

  constructor(options: BracketScanOptions) {
    this.#options = options
    this.#due = [...options.due]
  }

  get state(): BodyState {
    return this.#state === 'open' && this.#quote !== null ? 'argument' : this.#state
  }

  read(text: string): void {
    if (this.#stopped) return
    const whole = this.#pending + text
    let at = this.#inHead ? this.#headLength(whole) : 0
    while (!this.#inHead && at < whole.length && !this.#stopped) {
      const length = this.#quote === null ? this.#outside(whole, at) : this.#inString(whole, at, this.#quote)
      if (length === 0) break
      at += length
    }
    this.#pending = whole.slice(at)
  }

  get #stopped(): boolean {
    return this.#state === 'broken' || this.#state === 'other'
  }

  #headLength(text: string): number {
    const head = this.#options.head.exec(text)?.[0]
    if (head === undefined) {
      if (text.length > longestHead || !this.#options.partialHead.test(text)) this.#state = 'other'
      return 0
    }
    this.#inHead = false
    return head.length
  }

  #inString(text: string, at: number, quote: string): number {
    if (this.#options.escapes && text[at] === '\\') return text.length - at < 2 ? 0 : 2
    if (text.startsWith(quote, at)) {
      this.#quote = null
      return quote.length
    }
    if (this.#options.escapes && text[at] === '\n' && quote.length === 1) this.#state = 'broken'
    return quote.startsWith(text.slice(at, at + quote.length)) ? 0 : 1
  }

  #outside(text: string, at: number): number {
    const character = text[at]!
    const quotes = this.#options.quotes.filter((quote) => quote[0] === character)
    if (quotes.length > 0) return this.#openString(text, at, quotes)
    if (character in closers) this.#due.push(closers[character]!)
    if (this.#state === 'complete' ? !/\s/.test(character) : this.#due.length > deepest) this.#state = 'broken'
    else if (character === ')' || character === ']' || character === '}') {
      if (this.#due.pop() !== character) this.#state = 'broken'
      else if (this.#due.length === 0) this.#state = 'complete'
    }
    return 1
  }

  #openString(text: string, at: number, quotes: readonly string[]): number {
    if (quotes.some((quote) => text.length - at < quote.length && quote.startsWith(text.slice(at)))) return 0
    const [quote] = quotes.filter((candidate) => text.startsWith(candidate, at)).sort((left, right) => right.length - left.length)
    if (quote === undefined || this.#state === 'complete') this.#state = 'broken'
    else this.#quote = quote
    return quote?.length ?? 1
  }
}
