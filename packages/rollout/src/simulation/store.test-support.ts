import type { AttemptName, StopReason } from '@aworld-train/protocol'
import type { World } from './world.test-support.ts'

interface Result {
  readonly attempt: number
  readonly stopReason: StopReason
  readonly reward: number | null
}

/** The disk. Writes of an attempt that is not the current one are refused. */
export function createStore({ bug, must, reach }: World) {
  const rows = new Map<string, { attempt: number; result: Result | null }>()
  const queued = new Set<string>()
  const turns = new Set<string>()
  return {
    queued,
    turns,
    resultOf: (key: string) => rows.get(key)?.result,
    isCurrent: ({ key, attempt }: AttemptName) => rows.get(key)!.attempt === attempt,

    /** Number of the attempt that begins; null where the rollout has its result. */
    begin(key: string): number | null {
      const row = rows.get(key) ?? { attempt: -1, result: null }
      rows.set(key, row)
      if (row.result) return null
      if (bug?.world !== 'same attempt again' || row.attempt < 0) row.attempt++
      return row.attempt
    },

    /** Returns whether it was kept. */
    keepResult(key: string, result: Result): boolean {
      const row = rows.get(key)!
      const isCurrent = row.attempt === result.attempt && row.result === null
      if (!isCurrent) reach('store refused a result')
      if (!isCurrent && bug?.world !== 'results of any attempt') return false
      must(isCurrent, 'a rollout has one result, of its current attempt')
      row.result = result
      return true
    },

    /** Returns whether it was kept. */
    keepTurn({ key, attempt }: AttemptName, turn: string): boolean {
      const isCurrent = rows.get(key)!.attempt === attempt
      if (!isCurrent) reach('store refused a turn')
      if (!isCurrent && bug?.world !== 'turns of any attempt') return false
      must(isCurrent, 'turns are those of the current attempt')
      turns.add(turn)
      return true
    },
  }
}
