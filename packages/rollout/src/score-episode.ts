import {
  type AnswerKey,
  didYouMean,
  type Episode,
  type Reward,
  type RewardOutput,
  type RolloutRequest,
  TrainError,
  toTrainError,
  type WorkspaceFile,
} from '@aworld-train/core'
import type { Span } from '@opentelemetry/api'
import { inRewardSpan } from './observe/rollout-spans.ts'
import { decideReward, type ScoreUnfinished } from './reward-decision.ts'

export interface Scoring {
  /** `null`: episodes are not scored. */
  readonly reward: Reward | null
  readonly answerKey: (taskId: string) => AnswerKey
  readonly scoreUnfinished: ScoreUnfinished
  /** Whether an agent without a turn has not worked. Otherwise its calls may only be unseen. */
  readonly requiresModelCall: boolean
}

/** Returns the episode with its reward, if it gets one. An episode whose reward function fails has failed. */
export async function scoreEpisode(
  episode: Episode,
  files: readonly WorkspaceFile[],
  { task }: RolloutRequest,
  { reward, answerKey, scoreUnfinished, requiresModelCall }: Scoring,
  { span, signal }: { readonly span: Span; readonly signal: AbortSignal },
): Promise<Episode> {
  const { stopReason, trajectories } = episode
  // A context is full only for a model that was called through the gateway.
  const isUnseen = !requiresModelCall && stopReason !== 'context-overflow'
  const hasTurns = isUnseen || trajectories.some(({ turns }) => turns.length > 0)
  const decision = reward ? decideReward({ stopReason, hasTurns }, scoreUnfinished) : 'none'
  if (!reward || decision === 'none') return episode
  if (decision === 'zero') return { ...episode, reward: 0 }
  try {
    const score = () => inRewardSpan(span, reward.name, () => reward.score({ task, episode, answer: answerKey(task.id), files }, signal))
    const output = await score().catch((error: unknown) => {
      // Another episode may have ended the process of the reward.
      if (error instanceof TrainError && error.retryable && !signal.aborted) return score()
      throw error
    })
    const { scores, agents } = output
    requireKnownAgents(
      output,
      trajectories.map(({ agent }) => agent),
      reward.name,
    )
    return {
      ...episode,
      reward: output.reward,
      scores: { ...scores },
      ...(output.reward !== null && agents && { agentRewards: { ...agents } }),
    }
  } catch (error) {
    return { ...episode, stopReason: 'failed', error: toTrainError(error, 'REWARD_FAILED').toRecord() }
  }
}

/** Throws REWARD_INVALID if a reward has a value for an agent that is none of the program's. */
export function requireKnownAgents({ agents = {} }: RewardOutput, programAgents: readonly string[], reward: string): void {
  const unknown = Object.keys(agents).find((agent) => !programAgents.includes(agent))
  if (unknown === undefined) return
  const names = [...new Set(programAgents)].map((name) => `"${name}"`)
  throw new TrainError(
    'REWARD_INVALID',
    `Reward "${reward}" returned a reward for agent "${unknown}", which the program does not have.${didYouMean(unknown, programAgents)} It has ${names.join(', ')}.`,
  )
}
