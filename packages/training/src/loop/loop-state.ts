import { createLedger, type LedgerAccumulator } from '@aworld-train/core'
import type { Episode, EvaluationResult, TokenLedger } from '@aworld-train/protocol'

/** The state of a run beside its steps; saved under the step that it belongs to, before that step is committed. */
export interface SavedLoopState {
  readonly version: 1
  readonly ledger: TokenLedger
  readonly rollouts: number
  readonly episodesByStopReason: Readonly<Record<string, number>>
  readonly evaluations: Readonly<Record<string, EvaluationResult>>
  readonly best: { readonly step: number; readonly reward: number; readonly checkpoint: string } | null
  /** Times that the step after this one was given up because all its rollouts failed; part of their keys. */
  readonly emptied: number
  readonly phasesMs: Readonly<Record<string, number>>
}

/** The accounts of a run while it goes on. */
export interface LoopState {
  readonly ledger: LedgerAccumulator
  readonly evaluations: Record<string, EvaluationResult>
  readonly phasesMs: Record<string, number>
  best: SavedLoopState['best']
  emptied: number
  trainedTokens: number
  /** Counts tokens that an earlier process sampled, as they are recorded: the sampler of this process has not counted them. */
  recordedTokens: number
  addEpisodes(episodes: readonly Episode[]): void
  /** Adds the time that `work` takes to a phase. */
  timed<T>(phase: string, work: () => Promise<T>): Promise<T>
  /** `sampledSinceStart` is what the sampler counted in this process. */
  toSaved(sampledSinceStart: number): SavedLoopState
}

export function createLoopState(saved: SavedLoopState | null): LoopState {
  const episodesByStopReason: Record<string, number> = { ...saved?.episodesByStopReason }
  let rollouts = saved?.rollouts ?? 0
  const phasesMs: Record<string, number> = { ...saved?.phasesMs }
  const ledger = createLedger(saved?.ledger)
  const state: LoopState = {
    ledger,
    evaluations: { ...saved?.evaluations },
    phasesMs,
    best: saved?.best ?? null,
    emptied: saved?.emptied ?? 0,
    trainedTokens: saved?.ledger.trained ?? 0,
    recordedTokens: saved?.ledger.sampled ?? 0,
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
    toSaved: (sampledSinceStart) => ({
      version: 1,
      ledger: ledger.toLedger({ sampled: state.recordedTokens + sampledSinceStart, trained: state.trainedTokens }),
      rollouts,
      episodesByStopReason: { ...episodesByStopReason },
      evaluations: { ...state.evaluations },
      best: state.best,
      emptied: state.emptied,
      phasesMs: { ...phasesMs },
    }),
  }
  return state
}

/** Tokens that were sampled in an episode, by all its agents. */
export function sampledTokensOf({ trajectories }: Episode): number {
  let tokens = 0
  for (const { turns } of trajectories) for (const turn of turns) tokens += turn.completionTokenIds.length
  return tokens
}
