import { TrainError } from '@aworld-train/core'
import type { Gate } from './gate.ts'

export interface Pauses {
  /**
   * Holds new calls. With `drain` it resolves when none is in flight, and rejects with GATEWAY_FAILED if that
   * takes longer than a pause may.
   */
  pause(options: { readonly drain: boolean }): Promise<void>
  resume(): void
  /** Calls `listener` with `true` when calls begin to be held, and with `false` when they go on. */
  onPause(listener: (paused: boolean) => void): () => void
  /** Stops the watchdogs. */
  close(): void
}

/**
 * Pauses of a gate, each with a watchdog. A pause that nobody ends within `maxMs` ends itself, because nothing would be sampled any more.
 */
export function createPauses(gate: Gate, maxMs: number, onOverrun: (message: string) => void): Pauses {
  let watchdog: NodeJS.Timeout | undefined
  let overrun = Promise.withResolvers<never>()
  const listeners = new Set<(paused: boolean) => void>()

  function end(): void {
    clearTimeout(watchdog)
    watchdog = undefined
    if (!gate.paused()) return
    gate.resume()
    for (const listener of listeners) listener(false)
  }

  function begin(): void {
    if (!gate.paused()) for (const listener of listeners) listener(true)
    gate.pause()
    if (watchdog !== undefined || maxMs === Number.POSITIVE_INFINITY) return
    overrun = Promise.withResolvers<never>()
    // The caller may not wait for this promise, and its rejection must not end the process.
    overrun.promise.catch(() => {})
    watchdog = setTimeout(() => {
      const message = `Calls were held for ${maxMs} ms and go on now; resume the gateway when an update has ended or failed, or raise maxPauseMs.`
      end()
      overrun.reject(new TrainError('GATEWAY_FAILED', message))
      onOverrun(message)
    }, maxMs)
  }

  return {
    async pause({ drain }) {
      begin()
      if (drain) await Promise.race([gate.drained(), overrun.promise])
    },
    resume: end,
    onPause(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: () => clearTimeout(watchdog),
  }
}
