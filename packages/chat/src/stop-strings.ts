import { MarkerFinder } from './syntax/markers.ts'
import type { TextPiece } from './token-text.ts'

/** Passes text on up to the first stop string, and holds back text that may begin one. */
export interface StopStrings {
  readonly stopped: boolean
  push(piece: TextPiece): TextPiece[]
  flush(): TextPiece[]
}

export function createStopStrings(stop: readonly string[]): StopStrings {
  const finder = new MarkerFinder(stop.filter((text) => text !== ''))
  let pending: TextPiece[] = []
  let stopped = false
  return {
    get stopped() {
      return stopped
    },
    push(piece) {
      if (stopped) return []
      const text = pending.reduce((before, { text: part }) => before + part, '') + piece.text
      const found = finder.find(text, 0)
      const all = [...pending, piece]
      if (found) {
        stopped = true
        pending = []
        return cut(all, found.at)[0]
      }
      const [out, rest] = cut(all, finder.heldFrom(text, 0))
      pending = rest
      return out
    },
    flush() {
      const rest = pending
      pending = []
      return rest
    },
  }
}

function cut(pieces: readonly TextPiece[], length: number): [TextPiece[], TextPiece[]] {
  const before: TextPiece[] = []
  const after: TextPiece[] = []
  let left = length
  for (const piece of pieces) {
    const head = piece.text.slice(0, left)
    const tail = piece.text.slice(left)
    if (head !== '') before.push({ text: head, special: piece.special && tail === '', stop: piece.stop && tail === '' })
    if (tail !== '') after.push({ text: tail, special: piece.special && head === '', stop: piece.stop && head === '' })
    left -= head.length
  }
  return [before, after]
}
