import type { Episode, EvaluationResult } from '@aworld-train/core'
import type { DurationSum } from './rollout-clock.ts'
import { type Ledgers, type Samplers, TokenAccounts } from './token-accounts.ts'

/** The state of a run beside its steps. It is saved under its step, before that step is committed. */
export interface SavedLoopState extends Ledgers {
  readonly version: 1
  readonly rollouts: number
  readonly episodesByStopReason: Readonly<Record<string, number>>
  readonly evaluations: Readonly<Record<string, EvaluationResult>>
  readonly best: { readonly step: number; readonly reward: number; readonly checkpoint: string } | null
  /** Durations of the trained rollouts; `null` for a run whose steps its caller makes. */
  readonly durations: DurationSum | null
  readonly phasesMs: Readonly<Record<string, number>>
}

/** The accounts of a running process. */
export interface LoopState {
  readonly tokens: TokenAccounts
  readonly evaluations: Record<string, EvaluationResult>
  readonly phasesMs: Record<string, number>
  best: SavedLoopState['best']
  durations: SavedLoopState['durations']
  addEpisodes(episodes: readonly Episode[]): void
  /** Adds the time that `work` takes to a phase. */
  timed<T>(phase: string, work: () => Promise<T>): Promise<T>
  /** With `isComplete` false, part of what was sampled is in no account yet. */
  toSaved(isComplete: boolean): SavedLoopState
}

export function createLoopState(saved: SavedLoopState | null, samplers: Samplers): LoopState {
  const episodesByStopReason: Record<string, number> = { ...saved?.episodesByStopReason }
  let rollouts = saved?.rollouts ?? 0
  const phasesMs: Record<string, number> = { ...saved?.phasesMs }
  const tokens = new TokenAccounts(samplers, saved)
  const state: LoopState = {
    tokens,
    evaluations: { ...saved?.evaluations },
    phasesMs,
    best: saved?.best ?? null,
    durations: saved?.durations ?? null,
    addEpisodes(episodes) {
      rollouts += episodes.length
      for (const { stopReason } of episodes) episodesByStopReason[stopReason] = (episodesByStopReason[stopReason] ?? 0) + 1
    },
    async timed(phase, work) {
      const startedAt = performance.now()
      try {
        return await work()
      } finally {
        phasesMs[phase] = (phasesMs[phase] ?? 0) + performance.now() - startedAt
      }
    },
    toSaved: (isComplete) => ({
      version: 1,
      ...tokens.toLedgers(isComplete),
      rollouts,
      episodesByStopReason: { ...episodesByStopReason },
      evaluations: { ...state.evaluations },
      best: state.best,
      durations: state.durations,
      phasesMs: { ...phasesMs },
    }),
  }
  return state
}

/** Number of tokens that were sampled in an episode, by all its agents. */
export function sampledTokensOf({ trajectories }: Episode): number {
  let tokens = 0
  for (const { turns } of trajectories) for (const turn of turns) tokens += turn.completionTokenIds.length
  return tokens
}
