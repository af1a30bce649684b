import type { Timing } from '@aworld-train/protocol'

/** A sum of durations, of rollouts from the start of their last attempt to its end. */
export interface DurationSum {
  readonly ms: number
  readonly rollouts: number
}

/** Measures how well the slots for rollouts are used, and whether the rollouts that are trained take as long as all that end. */
export interface RolloutClock {
  /** A rollout has begun; it takes a slot as soon as one is free. */
  begin(): void
  /** A rollout has ended, with its timing where it has an episode. */
  end(timing: Timing | null): void
  train(timings: readonly Timing[]): void
  /** Of all rollouts that the run has trained. */
  trained(): DurationSum
  /** Mean duration of the rollouts that the run has trained by that of all that have ended; less than 1 where long ones are left out. `null` where nothing took time. */
  durationRatio(): number | null
  /** Begins a new measurement of the slots. */
  restart(): void
  /** Part of the slots that were taken since `restart`, from 0 to 1. */
  slotsUsed(): number
}

const nothing: DurationSum = { ms: 0, rollouts: 0 }

/** `slots` says how many rollouts may run at once now; `before` is of the rollouts that earlier processes of the run have trained. */
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
