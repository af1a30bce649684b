import type { Timing } from '@aworld-train/core'

/** A sum of durations. A rollout's duration is that of its last attempt. */
export interface DurationSum {
  readonly ms: number
  readonly rollouts: number
}

/** Measures how many of the slots for rollouts are used, and whether trained rollouts take as long as all that end. */
export interface RolloutClock {
  /** Reports that a rollout has begun; it takes a slot as soon as one is free. */
  begin(): void
  /** Reports that a rollout has ended, with its timing if it has an episode. */
  end(timing: Timing | null): void
  train(timings: readonly Timing[]): void
  /** The durations of all rollouts that the run has trained. */
  trained(): DurationSum
  /**
   * Mean duration of the trained rollouts divided by that of all that have ended; less than 1 if long ones are left out. `null` if nothing
   * took time.
   */
  durationRatio(): number | null
  /** Starts a new measurement of the slots. */
  restart(): void
  /** Fraction of the slots used since `restart`, from 0 to 1. */
  slotsUsed(): number
}

const nothing: DurationSum = { ms: 0, rollouts: 0 }

/**
 * `slots` returns how many rollouts may run at once at that moment. `before` covers the rollouts that earlier processes of the run have
 * trained.
 */
export function createRolloutClock(slots: () => number, before: DurationSum = nothing, now = () => performance.now()): RolloutClock {
  let running = 0
  let takenMs = 0
  let offeredMs = 0
  let countedAt = now()
  let trained = before
  let ended = before

  function count(): void {
    const at = now()
    const places = slots()
    takenMs += Math.min(running, places) * (at - countedAt)
    offeredMs += places * (at - countedAt)
    countedAt = at
  }

  return {
    begin() {
      count()
      running++
    },
    end(timing) {
      count()
      running--
      if (timing) ended = add(ended, timing)
    },
    train(timings) {
      trained = timings.reduce(add, trained)
    },
    trained: () => trained,
    durationRatio: () => (ended.ms === 0 || trained.rollouts === 0 ? null : trained.ms / trained.rollouts / (ended.ms / ended.rollouts)),
    restart() {
      countedAt = now()
      takenMs = offeredMs = 0
    },
    slotsUsed() {
      count()
      return offeredMs === 0 ? 0 : takenMs / offeredMs
    },
  }
}

const add = ({ ms, rollouts }: DurationSum, { startedAt, endedAt }: Timing): DurationSum => ({
  ms: ms + endedAt - startedAt,
  rollouts: rollouts + 1,
})
