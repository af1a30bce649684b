import type { Replica } from './replica.ts'

/** Those who wait until replicas have no call in flight. */
export class Drains {
  readonly #checks = new Set<() => void>()

  /** Resolves when no call is in flight at any of these. Rejects with the signal's reason. */
  until(replicas: readonly Pick<Replica, 'inFlight'>[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = () => {
        if (replicas.some(({ inFlight }) => inFlight > 0)) return
        this.#checks.delete(check)
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        this.#checks.delete(check)
        reject(signal.reason)
      }
      if (signal.aborted) return reject(signal.reason)
      this.#checks.add(check)
      signal.addEventListener('abort', giveUp, { once: true })
      check()
    })
  }

  /** Looks again. Called when a call has ended at some replica. */
  check(): void {
    for (const check of this.#checks) check()
  }
}
