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
  /** Callers by their signal, on which they share a listener: thousands of them on one are slow. */
  const leaving = new Map<AbortSignal, { readonly callers: Set<() => void>; readonly onAbort: () => void }>()

  function watch(signal: AbortSignal, leave: () => void): void {
    let group = leaving.get(signal)
    if (!group) {
      const callers = new Set<() => void>()
      const onAbort = () => {
        leaving.delete(signal)
        for (const each of callers) each()
      }
      group = { callers, onAbort }
      leaving.set(signal, group)
      signal.addEventListener('abort', onAbort, { once: true })
    }
    group.callers.add(leave)
  }

  function unwatch(signal: AbortSignal, leave: () => void): void {
    const group = leaving.get(signal)
    group?.callers.delete(leave)
    if (group?.callers.size !== 0) return
    leaving.delete(signal)
    signal.removeEventListener('abort', group.onAbort)
  }

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
            unwatch(signal, leave)
            resolve(grant)
          },
        }
        const leave = () => {
          line.delete(caller)
          reject(signal.reason)
          onLeave()
        }
        line.add(caller)
        watch(signal, leave)
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
