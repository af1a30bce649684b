import { createWaitingLine } from './waiting-line.ts'

/** Places for so many at a time; who finds none waits in the order of arrival. */
export interface Slots {
  /** Whether there was a place, which is taken then. */
  tryTake(): boolean
  /** Resolves when a place is taken; rejects with the signal's reason. */
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
