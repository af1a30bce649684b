import { argumentsText } from './call-object.ts'
import { scanJson } from './json-scan.ts'
import type { BodyScan, BodyState, ToolCallSyntax } from './syntax.ts'

interface NamedJsonMarkers {
  readonly name: string
  readonly open: string
  readonly close: string | null
  readonly around?: readonly string[]
  /** Text between the head of a call and its JSON. */
  readonly separator: string
  /** Pattern of the head, with groups `name` and `id`. */
  readonly head: RegExp
  /** Text after the JSON. */
  readonly tail?: string
  opening(name: string | null): string
}

/** A name before a JSON object, each after a marker of its own. */
export function namedJson({ name: row, separator, head, tail = '', opening, ...markers }: NamedJsonMarkers): ToolCallSyntax {
  return {
    name: row,
    opens: [markers.open],
    close: markers.close,
    ...(markers.around && { around: markers.around }),
    scan: () => new NamedJsonScan(separator, tail),
    parse(body) {
      const at = body.indexOf(separator)
      if (at < 0) return null
      const { name, id } = head.exec(body.slice(0, at))?.groups ?? {}
      const json = body.slice(at + separator.length).trim()
      const text = json.endsWith(tail) ? argumentsText(json.slice(0, json.length - tail.length)) : null
      if (!name || text === null) return null
      return [{ name, arguments: text, ...(id && { promptId: id }) }]
    },
    opening,
  }
}

const longestHead = 512

class NamedJsonScan implements BodyScan {
  readonly #separator: string
  readonly #json: BodyScan
  readonly #tail: string
  #head = ''
  #isBlank = true
  #inHead = true

  constructor(separator: string, tail: string) {
    this.#separator = separator
    this.#tail = tail
    this.#json = scanJson({ first: '{', tail })
  }

  get state(): BodyState {
    // A call without written arguments has none.
    if (!this.#inHead) return this.#isBlank && this.#tail === '' ? 'complete' : this.#json.state
    return this.#head.length > longestHead ? 'broken' : 'open'
  }

  read(text: string): void {
    if (this.#inHead) this.#readHead(text)
    else this.#readJson(text)
  }

  #readHead(text: string): void {
    if (this.#head.length > longestHead) return
    this.#head += text
    const at = this.#head.indexOf(this.#separator)
    if (at < 0 || at > longestHead) return
    this.#inHead = false
    this.#readJson(this.#head.slice(at + this.#separator.length))
  }

  #readJson(text: string): void {
    this.#isBlank &&= text.trim() === ''
    this.#json.read(text)
  }
}
