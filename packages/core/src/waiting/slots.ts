import { createWaitingLine } from './waiting-line.ts'

/** A limited number of places. Callers without a place wait in the order of arrival. */
export interface Slots {
  /** Takes a place if there is one, and returns whether it did. */
  tryTake(): boolean
  /** Resolves when it has taken a place; rejects with the signal's reason. */
  take(signal: AbortSignal): Promise<void>
  give(): void
  taken(): number
  waiting(): number
}

/** `onLeave` is called when a caller has left without a place. */
export function createSlots(limit: number, onLeave?: () => void): Slots {
  const line = createWaitingLine<null, void>(onLeave)
  let taken = 0
  const tryTake = () => {
    if (taken >= limit) return false
    taken++
    return true
  }
  return {
    tryTake,
    async take(signal) {
      signal.throwIfAborted()
      if (!tryTake()) await line.wait(null, signal)
    },
    give() {
      if (line.size() > 0) line.admit()
      else taken--
    },
    taken: () => taken,
    waiting: line.size,
  }
}
