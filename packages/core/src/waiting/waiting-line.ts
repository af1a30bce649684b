import { createSharedAborts } from './shared-aborts.ts'

/** Callers that wait in the order of their arrival; one whose signal aborts leaves. */
export interface WaitingLine<Need, Grant> {
  /** Resolves with what `admit` grants; rejects with the signal's reason. */
  wait(need: Need, signal: AbortSignal): Promise<Grant>
  /** What the first of those that wait needs; undefined where none does. */
  first(): Need | undefined
  /** Ends the wait of the first. */
  admit(grant: Grant): void
  size(): number
}

/** `onLeave` is called when a caller has left without having been admitted: those behind it may need less. */
export function createWaitingLine<Need, Grant>(onLeave: () => void = () => {}): WaitingLine<Need, Grant> {
  /** A set keeps the order of arrival and forgets a caller that went away. */
  const line = new Set<{ readonly need: Need; readonly admit: (grant: Grant) => void }>()
  const aborts = createSharedAborts()

  return {
    wait: (need, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) {
          reject(signal.reason)
          return
        }
        const caller = {
          need,
          admit(grant: Grant) {
            line.delete(caller)
            unwatch()
            resolve(grant)
          },
        }
        const leave = () => {
          line.delete(caller)
          reject(signal.reason)
          onLeave()
        }
        line.add(caller)
        const unwatch = aborts.watch(signal, leave)
      }),
    first() {
      const [caller] = line
      return caller?.need
    },
    admit(grant) {
      const [caller] = line
      caller?.admit(grant)
    },
    size: () => line.size,
  }
}
