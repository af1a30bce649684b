import type { TextPiece } from '../token-text.ts'
import type { BodyScan, BodyState } from './syntax.ts'

/** The text of a call that is open, in a form in which it can be read again. */
export class OpenCall {
  /** The marker that opened it; `null` for a call that is the whole message. */
  readonly opening: TextPiece | null
  readonly #scan: BodyScan
  readonly #pieces: { text: string; readonly special: boolean; readonly stop: boolean }[] = []
  #body = ''

  constructor(opening: TextPiece | null, scan: BodyScan) {
    this.opening = opening
    this.#scan = scan
  }

  get state(): BodyState {
    return this.#scan.state
  }

  get body(): string {
    return this.#body
  }

  get pieces(): readonly TextPiece[] {
    return this.#pieces
  }

  /** Reads a piece. Returns whether the text so far may still be a call. */
  read({ text, special, stop }: TextPiece): boolean {
    if (text !== '') {
      this.#scan.read(text)
      this.#body += text
      const last = this.#pieces.at(-1)
      if (last && !special && !last.special) last.text += text
      else this.#pieces.push({ text, special, stop })
    }
    const { state } = this.#scan
    return state !== 'broken' && state !== 'other'
  }
}
