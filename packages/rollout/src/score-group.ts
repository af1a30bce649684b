import { type Episode, type GroupScore, type RolloutRequest, type RolloutWriter, TrainError } from '@aworld-train/core'
import { askModels } from './ask-models.ts'
import { decideReward } from './reward-decision.ts'
import { type Scoring, scoringFailure } from './score-episode.ts'

export interface GroupScoring extends Scoring {
  readonly seed: number
  readonly store: Pick<RolloutWriter, 'keepScores'>
}

/**
 * Gives the episodes of a group the values of a reward that sees groups, once all of them have ended, and keeps these values. Failed members
 * are left out, and a group of one has no value. Values that were kept earlier stay, unless a member has none yet. If the reward fails, its
 * members have failed.
 */
export async function scoreGroup(
  requests: readonly RolloutRequest[],
  episodes: readonly Episode[],
  { reward, answerKey, scoreUnfinished, models, seed, store }: GroupScoring,
  signal: AbortSignal,
): Promise<readonly Episode[]> {
  const { scoreGroup: score } = reward ?? {}
  if (!reward || !score) return episodes
  const isScored = ({ stopReason, trajectories, groupScored }: Episode) =>
    groupScored
      ? stopReason !== 'failed'
      : decideReward({ stopReason, hasTurns: trajectories.some(({ turns }) => turns.length > 0) }, scoreUnfinished) === 'score'
  const members = episodes.filter(isScored)
  if (members.every(({ groupScored }) => groupScored)) return episodes
  const [{ task, group }] = requests as [RolloutRequest]
  const place = { reward: reward.name, rollout: group, attempt: 0, taskId: task.id, sample: 0 }
  const { result, trajectories } = await askModels(models, place, signal, async (context) => {
    if (members.length === 1) return [null]
    const values = await score.call(reward, { task, answer: answerKey(task.id), episodes: members, group, seed }, context)
    return requireValues(values, members.length, reward.name)
  })
  signal.throwIfAborted()
  const scores = members.map(({ rollout, stopReason }, index): GroupScore => {
    // What the models were asked is kept once, with the first member.
    const calls = index === 0 && trajectories.length > 0 ? { rewardTrajectories: [...trajectories] } : {}
    if ('error' in result)
      return { ...calls, rollout, reward: null, stopReason: 'failed', error: scoringFailure(result.error, members[index]!) }
    return { ...calls, rollout, stopReason, reward: result.value[index]! }
  })
  await store.keepScores(scores)
  const scored = new Map(scores.map((each) => [each.rollout, each]))
  return episodes.map((episode) =>
    scored.has(episode.rollout) ? { ...episode, ...scored.get(episode.rollout), groupScored: true } : episode,
  )
}

/** Scores the episodes of each group of the requests, and resolves in their order; `null` is a request without an episode. */
export async function scoreGroups<Member extends Episode | null>(
  requests: readonly RolloutRequest[],
  episodes: readonly Member[],
  score: (requests: readonly RolloutRequest[], episodes: readonly Episode[]) => Promise<readonly Episode[]>,
): Promise<Member[]> {
  const scored = [...episodes]
  const groups = Map.groupBy(requests.keys(), (index) => requests[index]!.group)
  await Promise.all(
    Array.from(groups.values(), async (indexes) => {
      const ended = indexes.filter((index) => episodes[index] !== null)
      const members = await score(
        ended.map((index) => requests[index]!),
        ended.map((index) => episodes[index]!),
      )
      for (const [place, index] of ended.entries()) scored[index] = members[place] as Member
    }),
  )
  return scored
}

function requireValues(values: readonly (number | null)[], episodes: number, name: string): readonly (number | null)[] {
  const isValue = (value: unknown) => value === null || (typeof value === 'number' && Number.isFinite(value))
  if (Array.isArray(values) && values.length === episodes && values.every(isValue)) return values
  const returned = Array.isArray(values) ? `${values.length} values, ${JSON.stringify(values).slice(0, 80)}` : `a ${typeof values}`
  throw new TrainError(
    'REWARD_INVALID',
    `Reward "${name}" returned ${returned} for a group of ${episodes} episodes; return a finite number, or null to abstain, for each of them.`,
  )
}
