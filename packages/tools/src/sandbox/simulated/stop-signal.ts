/** While a command runs, the simulation guards `Atomics` itself. */
const { load } = Atomics

export const isStopped = (stop: Int32Array | undefined): boolean => stop !== undefined && load(stop, 0) === 1

/**
 * A signal that aborts when `stop` is set from another thread. `stop` is read each time, because a loop in the simulation gives the event
 * loop no turn. `wake` notifies those who wait.
 */
export function createStopSignal(stop: () => Int32Array | undefined): { readonly signal: AbortSignal; readonly wake: () => void } {
  const controller = new AbortController()
  const { signal } = controller
  Object.defineProperty(signal, 'aborted', { get: () => isStopped(stop()) })
  return { signal, wake: () => controller.abort() }
}
