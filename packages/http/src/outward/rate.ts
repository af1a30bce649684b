import { createWaitingLine } from '@aworld-train/core'

/** Limits of the requests to one host or service. */
export interface RateLimits {
  /** Most requests at once. */
  readonly concurrent: number
  /** Most requests that may begin within a span of time; unlimited if absent. */
  readonly span?: { readonly requests: number; readonly ms: number } | undefined
}

/** Lets callers through in the order of their arrival, as the limits allow. */
export interface Rate {
  run<Value>(work: () => Promise<Value>, signal: AbortSignal): Promise<Value>
  /** Begins nothing for a while. */
  pause(ms: number): void
  /** Whether nothing runs or waits, and a new request would not have to wait. */
  isIdle(): boolean
}

export function createRate({ concurrent, span }: RateLimits): Rate {
  const line = createWaitingLine<null, void>(() => {
    if (line.size() === 0) clearTimer()
  })
  /** Times when the latest requests began, as many as the span allows. */
  const begun: number[] = []
  let pausedUntil = 0
  let running = 0
  let timer: NodeJS.Timeout | null = null
  const clearTimer = () => {
    if (timer) clearTimeout(timer)
    timer = null
  }

  const freeAt = () => Math.max(pausedUntil, span && begun.length === span.requests ? begun[0]! + span.ms : 0)

  function admit(): void {
    while (line.size() > 0 && running < concurrent) {
      const waitMs = freeAt() - performance.now()
      if (waitMs > 0) {
        clearTimer()
        timer = setTimeout(admit, Math.ceil(waitMs))
        return
      }
      if (span) begun.push(performance.now())
      if (span && begun.length > span.requests) begun.shift()
      running++
      line.admit()
    }
  }

  return {
    async run(work, signal) {
      const turn = line.wait(null, signal)
      admit()
      await turn
      try {
        return await work()
      } finally {
        running--
        admit()
      }
    },
    pause(ms) {
      pausedUntil = Math.max(pausedUntil, performance.now() + ms)
    },
    isIdle: () => running === 0 && line.size() === 0 && freeAt() <= performance.now(),
  }
}
