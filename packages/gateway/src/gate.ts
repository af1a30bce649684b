import { createWaitingLine } from '@aworld-train/core'

/** Admits calls, or holds them in order of arrival while paused. */
export interface Gate {
  /** Resolves when the call may run; rejects with the signal's reason. Each entry is matched by one `leave`. */
  enter(signal: AbortSignal): Promise<void>
  leave(): void
  pause(): void
  resume(): void
  /** Resolves when no call is inside. */
  drained(): Promise<void>
  inside(): number
  waiting(): number
  /** Milliseconds that the first waiting call has waited; 0 if none waits. */
  oldestWaitingMs(): number
  paused(): boolean
}

export function createGate(): Gate {
  /** Waiting calls, each with the time of its arrival. */
  const line = createWaitingLine<number, void>()
  const drains: (() => void)[] = []
  let inside = 0
  let paused = false

  return {
    async enter(signal) {
      signal.throwIfAborted()
      if (paused) await line.wait(performance.now(), signal)
      else inside++
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
      inside += line.size()
      while (line.size() > 0) line.admit()
    },
    async drained() {
      if (inside > 0) await new Promise<void>((resolve) => drains.push(resolve))
    },
    inside: () => inside,
    waiting: () => line.size(),
    oldestWaitingMs() {
      const first = line.first()
      return first === undefined ? 0 : performance.now() - first
    },
    paused: () => paused,
  }
}
