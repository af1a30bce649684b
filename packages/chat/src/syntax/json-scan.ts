import type { BodyScan, BodyState } from './syntax.ts'

const deepest = 200
const quote = 0x22
const backslash = 0x5c

export interface JsonScanOptions {
  readonly first: '{' | '['
  /** A character after which another value may follow. */
  readonly separator?: string
  /** Text after the value, apart from white space. */
  readonly tail?: string
  /** Allowed first keys. */
  readonly firstKeys?: readonly string[]
}

/** Follows strings and brackets of strict JSON. Anything that cannot be JSON breaks it at once. Nesting beyond 200 counts as broken. */
export function scanJson(options: JsonScanOptions): BodyScan {
  return new JsonScan(options)
}

class JsonScan implements BodyScan {
  readonly #options: JsonScanOptions
  #state: BodyState = 'open'
  /** Closing brackets that must follow, as character codes. */
  readonly #due: number[] = []
  #escaped = false
  /** Text that must follow the value; `null` until the value has ended. */
  #tail: string | null = null
  /** Text of the first key until it was checked. */
  #firstKey: string | null

  constructor(options: JsonScanOptions) {
    this.#options = options
    this.#firstKey = options.firstKeys ? '' : null
  }

  get state(): BodyState {
    return this.#state
  }

  read(text: string): void {
    for (let at = 0; at < text.length; at += 1) {
      if (this.#state === 'broken' || this.#state === 'other') return
      if (this.#state === 'argument') at = this.#inString(text, at)
      else this.#outside(text.charCodeAt(at))
    }
  }

  #inString(text: string, from: number): number {
    for (let at = from; at < text.length; at += 1) {
      const code = text.charCodeAt(at)
      if (this.#firstKey !== null && code !== quote) this.#firstKey += text[at]
      if (this.#escaped) this.#escaped = false
      else if (code === backslash) this.#escaped = true
      else if (code === quote) {
        this.#state = this.#firstKeyFits() ? 'open' : 'other'
        return at
      } else if (code < 0x20) {
        this.#state = 'broken'
        return at
      }
    }
    return text.length
  }

  #firstKeyFits(): boolean {
    const key = this.#firstKey
    this.#firstKey = null
    return key === null || this.#options.firstKeys!.includes(key)
  }

  #outside(code: number): void {
    if (isSpace(code)) return
    const due = this.#due
    if (due.length === 0) this.#between(code)
    else if (code === quote) this.#state = 'argument'
    else if (code === due.at(-1)) {
      due.pop()
      if (due.length === 0) this.#end()
    } else if (isOpening(code)) {
      due.push(code + 2)
      if (due.length > deepest) this.#state = 'broken'
    } else if (!mayStandOutside(code)) this.#state = this.#firstKey === null ? 'broken' : 'other'
  }

  #end(): void {
    this.#tail = this.#options.tail ?? ''
    if (this.#firstKey !== null) this.#state = 'other'
    else if (this.#tail === '') this.#state = 'complete'
  }

  #between(code: number): void {
    const { first, separator } = this.#options
    if (this.#tail === null) {
      if (code === first.charCodeAt(0)) this.#due.push(code + 2)
      else this.#state = 'broken'
    } else if (this.#tail !== '' && code === this.#tail.charCodeAt(0)) {
      this.#tail = this.#tail.slice(1)
      if (this.#tail === '') this.#state = 'complete'
    } else if (this.#state === 'complete' && code === separator?.charCodeAt(0)) {
      this.#tail = null
      this.#state = 'open'
    } else this.#state = 'broken'
  }
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
/** Whether a code is `{` or `[`, whose closing brackets are two codes further. */
const isOpening = (code: number): boolean => code === 0x7b || code === 0x5b

/** Whether a code may stand outside of strings: digits, signs, separators and the letters of `true`, `false` and `null`. */
function mayStandOutside(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || '+-.,:eEtrufalsn'.includes(String.fromCharCode(code))
}
