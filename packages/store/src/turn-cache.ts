import type { Turn } from '@aworld-train/core'

/** Turns of running rollouts, so that a continuation is compared with its parent without reading it back. */
export interface TurnCache {
  add(rollout: string, attempt: number, trajectory: string, turn: Turn): void
  get(rollout: string, attempt: number, trajectory: string, index: number): Turn | null
  markStored(rollout: string, attempt: number, trajectory: string, index: number): void
  isStored(rollout: string, attempt: number, trajectory: string, index: number): boolean
  drop(rollout: string): void
}

interface Entry {
  readonly turn: Turn
  stored: boolean
}

export function createTurnCache(): TurnCache {
  const rollouts = new Map<string, { readonly attempt: number; readonly turns: Map<string, Entry> }>()

  function find(rollout: string, attempt: number, trajectory: string, index: number): Entry | undefined {
    const live = rollouts.get(rollout)
    return live?.attempt === attempt ? live.turns.get(`${index} ${trajectory}`) : undefined
  }

  function set(rollout: string, attempt: number, key: string, entry: Entry): void {
    let live = rollouts.get(rollout)
    if (live && live.attempt > attempt) return
    if (live?.attempt !== attempt) {
      live = { attempt, turns: new Map() }
      rollouts.set(rollout, live)
    }
    live.turns.set(key, entry)
  }

  return {
    add: (rollout, attempt, trajectory, turn) => set(rollout, attempt, `${turn.index} ${trajectory}`, { turn, stored: false }),
    get: (rollout, attempt, trajectory, index) => find(rollout, attempt, trajectory, index)?.turn ?? null,
    markStored(rollout, attempt, trajectory, index) {
      const entry = find(rollout, attempt, trajectory, index)
      if (entry) entry.stored = true
    },
    isStored: (rollout, attempt, trajectory, index) => find(rollout, attempt, trajectory, index)?.stored ?? false,
    drop: (rollout) => void rollouts.delete(rollout),
  }
}
