import type { Clock } from '../clock.ts'
import type { World } from './world.test-support.ts'

/** A process of the simulated world. What it does, it does by its clock or because something reached it. */
export interface SimulatedProcess {
  readonly clock: Clock
  isUp(): boolean
  isAwake(): boolean
  /** Time until which it stands still, or has stood still last. */
  stillUntil(): number
  /** Hands it something from outside, which it takes when it is awake. A process that has been killed takes nothing. */
  take(act: () => void): void
  standStill(seconds: number): void
  /** Ends it between two of its actions. */
  kill(): void
  /** Calls the function when it is killed. */
  onKill(act: () => void): void
  /** Lets a killed process run out after the life that is over, so that it holds nothing of the real process. */
  bury(): void
}

/** Messages of the time in which a process stood still are read after its timers have run. */
const readAfterSeconds = 0.001

export function createProcess({ now, at }: Pick<World, 'now' | 'at'>): SimulatedProcess {
  let state: 'up' | 'killed' | 'buried' = 'up'
  let stillUntil = 0
  const parked: (() => void)[] = []
  const killed: (() => void)[] = []

  function run(act: () => void): void {
    if (state === 'killed') parked.push(act)
    else act()
  }

  function plan(ms: number, act: () => void): () => void {
    let endWait = () => {}
    let isOff = false
    const due = () => {
      if (isOff) return
      if (state === 'up' && now() < stillUntil) endWait = at(stillUntil, due)
      else run(() => isOff || act())
    }
    endWait = at(now() + Math.max(0, ms) / 1000, due)
    return () => {
      isOff = true
      endWait()
    }
  }

  function take(act: () => void): void {
    if (state === 'killed') return
    if (stillUntil > 0 && now() < stillUntil + readAfterSeconds) at(stillUntil + readAfterSeconds, () => take(act))
    else act()
  }

  return {
    clock: {
      now: () => now() * 1000,
      after: plan,
      every(ms, act) {
        let end = plan(ms, beat)
        function beat(): void {
          end = plan(ms, beat)
          act()
        }
        return () => end()
      },
    },
    isUp: () => state === 'up',
    isAwake: () => state === 'up' && now() >= stillUntil,
    stillUntil: () => stillUntil,
    take,
    standStill(seconds) {
      stillUntil = now() + seconds
    },
    kill() {
      if (state !== 'up') return
      state = 'killed'
      for (const act of killed) act()
    },
    onKill: (act) => void killed.push(act),
    bury() {
      state = 'buried'
      for (const act of parked.splice(0)) act()
    },
  }
}
