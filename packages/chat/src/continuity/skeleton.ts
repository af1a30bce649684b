/** A rendering with the sampled texts replaced by marks, in the pieces in which the template wrote it. */
export type Skeleton = readonly string[]

export interface ComparedSkeleton {
  /** The whole, with the pieces that `recorded` has too as the same strings. */
  readonly skeleton: Skeleton
  /** Text behind the pieces that are the same; it holds all marks that `recorded` does not. */
  readonly tail: string
  /** The whole begins with the whole of `recorded`. */
  readonly startsAsRecorded: boolean
}

/** Compares piece by piece: the text of a long history is neither joined nor copied. */
export function compareSkeletons(recorded: Skeleton, now: string[]): ComparedSkeleton {
  let same = 0
  while (same < recorded.length && recorded[same] === now[same]) {
    now[same] = recorded[same]!
    same += 1
  }
  const tail = joinFrom(now, same)
  return { skeleton: now, tail, startsAsRecorded: tail.startsWith(joinFrom(recorded, same)) }
}

/** The pieces before the last occurrence of `mark`; `null` where it is missing. */
export function cutAtMark(pieces: readonly string[], mark: string): string[] | null {
  const last = pieces.findLastIndex((piece) => piece.includes(mark))
  if (last < 0) return null
  const piece = pieces[last]!
  return [...pieces.slice(0, last), piece.slice(0, piece.lastIndexOf(mark))]
}

/** At least the last 200 characters, where there are so many. */
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
