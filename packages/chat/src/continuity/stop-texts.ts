/** The place of a stop token in a rendered text. */
export interface StopPlace {
  readonly id: number
  readonly text: string
  readonly start: number
  readonly end: number
}

/** The first stop token at or after `from`: the longest of those that begin at the earliest place. */
export function firstStop(text: string, stops: ReadonlyMap<number, string>, from = 0): StopPlace | null {
  let best: StopPlace | null = null
  for (const [id, stop] of stops) {
    const start = text.indexOf(stop, from)
    if (start < 0) continue
    if (best === null || start < best.start || (start === best.start && stop.length > best.text.length)) {
      best = { id, text: stop, start, end: start + stop.length }
    }
  }
  return best
}

/** Text between a mark and the stop after it, with ids of calls masked, as the probe recorded it. */
export function maskedGap(gap: string, ids: readonly string[]): string {
  return ids.reduce((text, id) => text.replaceAll(id, '#'), gap)
}
