/** Watches signals for many callers. Callers of one signal share a listener, because thousands of listeners on one signal are slow. */
export interface SharedAborts {
  /** Calls `onAbort` when the signal aborts. The returned function ends that. */
  watch(signal: AbortSignal, onAbort: () => void): () => void
}

export function createSharedAborts(): SharedAborts {
  const groups = new Map<AbortSignal, { readonly callers: Set<() => void>; readonly listener: () => void }>()

  function groupOf(signal: AbortSignal) {
    const existing = groups.get(signal)
    if (existing) return existing
    const callers = new Set<() => void>()
    const listener = () => {
      groups.delete(signal)
      for (const each of callers) each()
    }
    const group = { callers, listener }
    groups.set(signal, group)
    signal.addEventListener('abort', listener, { once: true })
    return group
  }

  return {
    watch(signal, onAbort) {
      const { callers, listener } = groupOf(signal)
      callers.add(onAbort)
      return () => {
        callers.delete(onAbort)
        if (callers.size > 0 || groups.get(signal)?.callers !== callers) return
        groups.delete(signal)
        signal.removeEventListener('abort', listener)
      }
    },
  }
}
