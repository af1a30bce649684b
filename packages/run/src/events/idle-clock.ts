/** Measures how long rollouts ran while none of their model calls was under way: the time of tools, agents, gateway and channel. */
export interface IdleClock {
  rollouts(change: 1 | -1): void
  calls(change: 1 | -1): void
  /** The milliseconds of that kind since the last call of this method. */
  take(): number
}

/** `now` in milliseconds, monotonic. */
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
