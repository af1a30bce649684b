import { createSharedAborts } from './shared-aborts.ts'

/** Callers that wait in the order of their arrival. One whose signal aborts leaves. */
export interface WaitingLine<Need, Grant> {
  /** Resolves with what `admit` grants; rejects with the signal's reason. */
  wait(need: Need, signal: AbortSignal): Promise<Grant>
  /** The need of the first waiting caller; `undefined` if none waits. */
  first(): Need | undefined
  /** Ends the wait of the first. */
  admit(grant: Grant): void
  size(): number
}

/** `onLeave` is called when a caller has left without being admitted, because callers behind it may need less. */
export function createWaitingLine<Need, Grant>(onLeave: () => void = () => {}): WaitingLine<Need, Grant> {
  /** A set keeps the order of arrival and forgets callers that left. */
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
