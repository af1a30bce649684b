import type { RunProgress } from '@aworld-train/core'

/** The newest start of each run. An older one that connects again is rejected, also after a restart of the service. */
export interface ClientRuns {
  /** Whether a newer start of its run was there. */
  isSuperseded(run: string, incarnation: string): boolean
  /** Makes `incarnation` the newest of its run. Resolves, when this is durable, to whether another one was the newest before. */
  enter(run: string, incarnation: string): Promise<boolean>
}

interface RunStarts {
  readonly current: string
  readonly superseded: readonly string[]
}

const stateKey = 'channel-runs'

/** Starts of one run that are remembered. */
const remembered = 1_000

export function createClientRuns(store: Pick<RunProgress, 'getState' | 'setState'>): ClientRuns {
  const runs = new Map(Object.entries((store.getState(stateKey) ?? {}) as Record<string, RunStarts>))

  return {
    isSuperseded: (run, incarnation) => runs.get(run)?.superseded.includes(incarnation) ?? false,
    async enter(run, incarnation) {
      const starts = runs.get(run)
      if (starts?.current === incarnation) return false
      const superseded = starts ? [...starts.superseded, starts.current].slice(-remembered) : []
      runs.set(run, { current: incarnation, superseded })
      await store.setState(stateKey, Object.fromEntries(runs))
      return starts !== undefined
    },
  }
}
