import type { Mark } from './marks.ts'

/** A rendering with marks in place of sampled texts, in the pieces that the template wrote. */
export type Skeleton = readonly string[]

export interface ComparedSkeleton {
  /** The whole text. Pieces that `recorded` also has are the same string objects. */
  readonly skeleton: Skeleton
  /** The text after the equal pieces. It has all marks that `recorded` lacks. */
  readonly tail: string
  /** Whether the whole begins with the whole of `recorded`. */
  readonly startsAsRecorded: boolean
}

/** Compares piece by piece, so that the text of a long history is neither joined nor copied. */
export function compareSkeletons(recorded: Skeleton, now: string[]): ComparedSkeleton {
  let same = 0
  while (same < recorded.length && recorded[same] === now[same]) {
    now[same] = recorded[same]!
    same += 1
  }
  const tail = joinFrom(now, same)
  return { skeleton: now, tail, startsAsRecorded: tail.startsWith(joinFrom(recorded, same)) }
}

/** The pieces before the first of `marks`. */
export function cutAtMark(pieces: readonly string[], marks: readonly Mark[]): string[] {
  for (const [index, piece] of pieces.entries()) {
    const places = marks.map(({ text }) => piece.indexOf(text)).filter((at) => at >= 0)
    if (places.length > 0) return [...pieces.slice(0, index), piece.slice(0, Math.min(...places))]
  }
  return [...pieces]
}

/** The end of the text, at least its last 200 characters. */
export function endOf(skeleton: Skeleton): string {
  let text = ''
  for (let at = skeleton.length - 1; at >= 0 && text.length < 200; at -= 1) text = skeleton[at]! + text
  return text
}

function joinFrom(pieces: readonly string[], from: number): string {
  let text = ''
  for (let at = from; at < pieces.length; at += 1) text += pieces[at]!
  return text
}
