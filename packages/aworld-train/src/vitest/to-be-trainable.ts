import {
  type Episode,
  groupAdvantages,
  type SampleAssembly,
  TrainError,
  type TrainingSample,
  toTrainingSamples,
  totalCount,
} from '@aworld-train/core'
import type { MatcherState } from 'vitest'
import { describeEnd, describeTurn, explain, isEpisode, isEvaluation, type Match, rounded, turnsOf, wrongSubject } from './matcher.ts'

/** Whether a training could make samples of an episode and, for several episodes, whether the rewards of each group differ. */
export function toBeTrainable(this: MatcherState, received: unknown): Match {
  const subject = isEvaluation(received) ? received.episodes : received
  const episodes: unknown[] = Array.isArray(subject) ? subject : [subject]
  if (episodes.length === 0 || !episodes.every(isEpisode))
    throw wrongSubject('toBeTrainable', 'an episode of runOnce, or a list of episodes', received)
  const problems = [...episodes.flatMap(problemsOf), ...(Array.isArray(subject) ? groupProblems(episodes) : [])]
  return {
    pass: problems.length === 0,
    message: () => {
      if (problems.length > 0) return explain(this, 'toBeTrainable', problems)
      const trained = episodes.map((episode) => maskedTokens(toTrainingSamples(episode).samples)).reduce((sum, tokens) => sum + tokens, 0)
      return explain(this, 'toBeTrainable', [`Expected: nothing to train`, `Received: ${trained} sampled tokens that would be trained`])
    },
  }
}

/** Reasons why an episode cannot be trained or its record is incomplete; empty if there are none. */
function problemsOf(episode: Episode): string[] {
  const where = `Rollout "${episode.rollout}"`
  let assembly: SampleAssembly
  try {
    assembly = toTrainingSamples(episode)
  } catch (error) {
    if (!(error instanceof TrainError || error instanceof RangeError)) throw error
    return [`${where} cannot be trained: ${error.message}`]
  }
  const { samples, untrained, sampled } = assembly
  const trained = maskedTokens(samples)
  if (trained === 0) {
    const reasons = Object.entries(untrained).map(([reason, tokens]) => `${reason} (${tokens} tokens)`)
    const reason = reasons.join(', ') || 'the policy sampled no token'
    return [`${where} cannot be trained: ${reason}.`, ...describeEnd(episode), ...unscored(episode)]
  }
  const unexplained = sampled - trained - totalCount(untrained)
  const ledger =
    unexplained === 0 ? [] : [`${where}: ${unexplained} of ${sampled} sampled tokens are in no sample, and no reason says why.`]
  return [...ledger, ...badLogprobs(episode)]
}

const unscored = ({ stopReason, reward }: Episode) =>
  stopReason === 'completed' && reward === null ? ['It has no reward; give the training a rewardFunc.'] : []

/** The first sampled token of an episode with an invalid logprob. */
function badLogprobs(episode: Episode): string[] {
  for (const turn of turnsOf(episode)) {
    const bad = turn.rolloutLogprobs.findIndex((logprob) => !Number.isFinite(logprob) || logprob > 0)
    if (bad < 0) continue
    const token = `token ${bad} (id ${turn.completionTokenIds[bad]}) of ${describeTurn(turn)}`
    return [`Rollout "${episode.rollout}": ${token} has the logprob ${turn.rolloutLogprobs[bad]}, which is none.`]
  }
  return []
}

/** Groups that teach nothing. */
function groupProblems(episodes: readonly Episode[]): string[] {
  return [...Map.groupBy(episodes, ({ group }) => group)].flatMap(([group, members]) => {
    const rewards = members.map(({ reward }) => reward ?? 0)
    const { noGradient } = groupAdvantages(rewards, 'group-relative')
    if (noGradient === null) return []
    return [
      `Group "${group}" teaches nothing: ${noGradient} (${rewards.length === 1 ? 'reward' : 'rewards'} ${rewards.map(rounded).join(', ')}).`,
    ]
  })
}

const maskedTokens = (samples: readonly TrainingSample[]) =>
  samples.reduce((sum, { lossMask }) => sum + lossMask.reduce((tokens, mask) => tokens + mask, 0), 0)
