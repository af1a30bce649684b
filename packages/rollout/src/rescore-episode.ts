import { type Episode, type RolloutRequest, StopReason, type WorkspaceFile } from '@aworld-train/core'
import { endRolloutSpan, startRolloutSpan } from './observe/rollout-spans.ts'
import { type Scoring, scoreEpisode } from './score-episode.ts'

/** The reward of an episode and the files that it left, for another look at it. */
export interface Rescoring extends Scoring {
  readonly files: readonly WorkspaceFile[]
  readonly signal: AbortSignal
  /** Number of the attempt in the record that keeps the result. */
  readonly attempt: number
}

/**
 * The episode as another reward scores it. One that failed before its reward stays failed. Turns of attempts that left no result are left
 * out.
 */
export async function rescoreEpisode(earlier: Episode, request: RolloutRequest, rescoring: Rescoring): Promise<Episode> {
  const { files, signal, attempt } = rescoring
  const episode = asAttempt(withoutReward(earlier), attempt)
  const span = startRolloutSpan(request)
  const scored = await scoreEpisode(episode, files, request, rescoring, { span, signal })
  endRolloutSpan(span, scored)
  return scored
}

/** An episode as it was before its reward, of which a failure is taken back. */
function withoutReward({
  agentRewards: _rewards,
  groupScored: _group,
  rewardTrajectories: _calls,
  error,
  stopReason,
  ...episode
}: Episode): Episode {
  const unscored = { ...episode, reward: null, scores: {} }
  const endedAs = StopReason.safeParse(error?.details?.['endedAs'])
  if (endedAs.success) return { ...unscored, stopReason: endedAs.data }
  return { ...unscored, stopReason, ...(error && { error }) }
}

const asAttempt = (episode: Episode, attempt: number): Episode => ({
  ...episode,
  attempt,
  trajectories: episode.trajectories.map((trajectory) => ({
    ...trajectory,
    turns: trajectory.turns.filter((turn) => turn.attempt === episode.attempt).map((turn) => ({ ...turn, attempt })),
  })),
})
