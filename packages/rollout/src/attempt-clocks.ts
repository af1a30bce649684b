import type { AttemptName } from '@aworld-train/core'
import type { TimeBudget } from './time-budget.ts'

/** The budget of a running attempt, with the functions that end its holds. */
interface AttemptClock {
  readonly budget: TimeBudget
  /** The hold of all attempts. */
  forAll: (() => void) | null
  /** The hold of this one. */
  forItself: (() => void) | null
}

const idOf = ({ key, attempt }: AttemptName) => `${attempt} ${key}`

/** The clocks of the running attempts, which are stopped one by one or all together. */
export class AttemptClocks {
  readonly #clocks = new Map<string, AttemptClock>()
  #areHeld = false

  add(attempt: AttemptName, budget: TimeBudget): void {
    this.#clocks.set(idOf(attempt), { budget, forAll: this.#areHeld ? budget.hold() : null, forItself: null })
  }

  remove(attempt: AttemptName): void {
    this.#clocks.delete(idOf(attempt))
  }

  /** An attempt that does not run has no clock. */
  hold(attempt?: AttemptName): void {
    if (attempt) {
      const clock = this.#clocks.get(idOf(attempt))
      if (clock) clock.forItself ??= clock.budget.hold()
      return
    }
    this.#areHeld = true
    for (const clock of this.#clocks.values()) clock.forAll ??= clock.budget.hold()
  }

  resume(attempt?: AttemptName): void {
    if (attempt) {
      const clock = this.#clocks.get(idOf(attempt))
      clock?.forItself?.()
      if (clock) clock.forItself = null
      return
    }
    this.#areHeld = false
    for (const clock of this.#clocks.values()) {
      clock.forAll?.()
      clock.forAll = null
    }
  }
}
