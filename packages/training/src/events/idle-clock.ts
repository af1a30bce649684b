/** Measures the time in which rollouts ran while none of their model calls did: the time of tools, agents, gateway and channel. */
export interface IdleClock {
  rollouts(change: 1 | -1): void
  calls(change: 1 | -1): void
  /** Milliseconds of such time since the last call of this method. */
  take(): number
}

/** `now` is monotonic, in milliseconds. */
export function createIdleClock(now: () => number = () => performance.now()): IdleClock {
  let rollouts = 0
  let calls = 0
  let idle = 0
  let since = now()
  const pass = () => {
    const at = now()
    if (rollouts > 0 && calls === 0) idle += at - since
    since = at
  }
  return {
    rollouts(change) {
      pass()
      rollouts = Math.max(0, rollouts + change)
    },
    calls(change) {
      pass()
      calls = Math.max(0, calls + change)
    },
    take() {
      pass()
      const idleMs = idle
      idle = 0
      return idleMs
    },
  }
}
