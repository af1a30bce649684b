/** Random numbers in [0, 1) from a seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296
  }
}

interface Planned {
  readonly at: number
  /** `null` where it was called off. */
  run: (() => void) | null
}

/** A clock that jumps from one planned action to the next. Actions of the same time run in the order in which they were planned. */
export function createVirtualTime() {
  /** The next action is the last element. */
  const plan: Planned[] = []
  let time = 0
  /** Plans an action for a time. The returned function calls it off. */
  function at(when: number, run: () => void): () => void {
    let low = 0
    let high = plan.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (plan[middle]!.at > when) low = middle + 1
      else high = middle
    }
    const planned: Planned = { at: when, run }
    plan.splice(low, 0, planned)
    return () => {
      planned.run = null
    }
  }

  return {
    now: () => time,
    at,
    /** Plans an action for this many seconds from now. */
    after: (seconds: number, run: () => void) => at(time + seconds, run),
    /** Runs the next action; false where none is left. */
    step(): boolean {
      for (let next = plan.pop(); next; next = plan.pop()) {
        if (!next.run) continue
        time = next.at
        next.run()
        return true
      }
      return false
    },
  }
}
