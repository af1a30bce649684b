import {
  type AnswerKey,
  didYouMean,
  type Episode,
  type ErrorRecord,
  type Reward,
  type RewardOutput,
  type RolloutRequest,
  TrainError,
  type WorkspaceFile,
} from '@aworld-train/core'
import type { Span } from '@opentelemetry/api'
import { askModels, type RewardModels } from './ask-models.ts'
import { inRewardSpan, traceHeadersOf } from './observe/rollout-spans.ts'
import { decideReward, type ScoreUnfinished } from './reward-decision.ts'

export interface Scoring {
  /** `null`: episodes are not scored. */
  readonly reward: Reward | null
  readonly answerKey: (taskId: string) => AnswerKey
  readonly scoreUnfinished: ScoreUnfinished
  /** Whether an agent without a turn has not worked. Otherwise its calls may only be unseen. */
  readonly requiresModelCall: boolean
  /** `null` if the training has no frozen models. */
  readonly models: RewardModels | null
}

/** Returns the episode with its reward, if it gets one. An episode whose reward function fails has failed. */
export async function scoreEpisode(
  episode: Episode,
  files: readonly WorkspaceFile[],
  { key, task, sample }: RolloutRequest,
  { reward, answerKey, scoreUnfinished, requiresModelCall, models }: Scoring,
  { span, signal }: { readonly span: Span; readonly signal: AbortSignal },
): Promise<Episode> {
  const { stopReason, trajectories } = episode
  // A context is full only for a model that was called through the gateway.
  const isUnseen = !requiresModelCall && stopReason !== 'context-overflow'
  const hasTurns = isUnseen || trajectories.some(({ turns }) => turns.length > 0)
  const decision = reward ? decideReward({ stopReason, hasTurns }, scoreUnfinished) : 'none'
  if (!reward || decision === 'none') return episode
  if (decision === 'zero') return { ...episode, reward: 0 }
  // Its value comes with those of its group.
  if (reward.scoreGroup) return episode
  const input = { task, episode, answer: answerKey(task.id), files }
  const place = { reward: reward.name, rollout: key, attempt: episode.attempt, taskId: task.id, sample, traceHeaders: traceHeadersOf(span) }
  const agents = trajectories.map(({ agent }) => agent)
  const { result, trajectories: calls } = await askModels(models, place, signal, async (context) => {
    const output = await inRewardSpan(span, reward.name, () => reward.score(input, context))
    requireKnownAgents(output, agents, reward.name)
    return output
  })
  const judged = { ...episode, ...(calls.length > 0 && { rewardTrajectories: [...calls] }) }
  if ('error' in result) return { ...judged, stopReason: 'failed', error: scoringFailure(result.error, episode) }
  const { reward: value, scores, agents: agentRewards } = result.value
  return { ...judged, reward: value, scores: { ...scores }, ...(value !== null && agentRewards && { agentRewards: { ...agentRewards } }) }
}

/** The record of a scoring that failed, with how the episode had ended, so that it can be scored again. */
export function scoringFailure(error: TrainError, { stopReason }: Pick<Episode, 'stopReason'>): ErrorRecord {
  const record = error.toRecord()
  return { ...record, details: { ...record.details, endedAs: stopReason } }
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
