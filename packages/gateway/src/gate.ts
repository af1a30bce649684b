/** Admits calls, or holds them in order of arrival while paused. */
export interface Gate {
  /** Whether a call may run at once, which is matched by one `leave` then. */
  tryEnter(): boolean
  /** Resolves when the call may run; rejects with the signal's reason. Each entry is matched by one `leave`. */
  enter(signal: AbortSignal): Promise<void>
  leave(): void
  pause(): void
  resume(): void
  /** Resolves when no call is inside. */
  drained(): Promise<void>
  inside(): number
  waiting(): number
  /** How long the first of those that wait has waited; 0 where none does. */
  oldestWaitingMs(): number
  paused(): boolean
}

export function createGate(): Gate {
  /** When each came. A map keeps the order of arrival and forgets a caller that went away. */
  const queue = new Map<() => void, number>()
  const drains: (() => void)[] = []
  let inside = 0
  let paused = false

  function tryEnter(): boolean {
    if (paused) return false
    inside++
    return true
  }

  return {
    tryEnter,
    async enter(signal) {
      signal.throwIfAborted()
      if (tryEnter()) return
      await new Promise<void>((resolve, reject) => {
        const admit = () => {
          signal.removeEventListener('abort', leaveQueue)
          inside++
          resolve()
        }
        const leaveQueue = () => {
          queue.delete(admit)
          reject(signal.reason)
        }
        queue.set(admit, performance.now())
        signal.addEventListener('abort', leaveQueue, { once: true })
      })
    },
    leave() {
      inside--
      if (inside === 0 && drains.length > 0) for (const resolve of drains.splice(0)) resolve()
    },
    pause() {
      paused = true
    },
    resume() {
      paused = false
      for (const admit of queue.keys()) {
        queue.delete(admit)
        admit()
      }
    },
    async drained() {
      if (inside > 0) await new Promise<void>((resolve) => drains.push(resolve))
    },
    inside: () => inside,
    waiting: () => queue.size,
    oldestWaitingMs() {
      const [first] = queue.values()
      return first === undefined ? 0 : performance.now() - first
    },
    paused: () => paused,
  }
}
