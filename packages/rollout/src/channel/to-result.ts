import {
  type ChannelArray,
  type ChannelFailure,
  type ChannelHello,
  type ChannelPartition,
  type ChannelResult,
  type Episode,
  type ErrorRecord,
  type RowSelection,
  type Timing,
  type TrainerRowAssembly,
  type TrainerRowOptions,
  toTrainerRows,
} from '@aworld-train/core'

export interface ResultOptions {
  readonly rows: RowSelection
  readonly limits: ChannelHello['limits']
  readonly partition: ChannelPartition
  readonly reward: 'service' | 'native'
  readonly incompleteEpisodes?: TrainerRowOptions['incompleteEpisodes']
  readonly ownReward?: TrainerRowOptions['ownReward']
  readonly solution?: ((episode: Episode) => string) | undefined
}

export interface ResultFrame {
  readonly message: ChannelResult
  readonly arrays: Record<string, ChannelArray>
  readonly assembly: TrainerRowAssembly | null
}

const toFailure = ({ code, message, retryable }: ErrorRecord): ChannelFailure => ({ code, message, retryable })

const duration = (timings: readonly Timing[]) => timings.reduce((sum, { startedAt, endedAt }) => sum + Math.max(0, endedAt - startedAt), 0)

/** Converts an episode to the result that its trainer client gets. In `val` a rollout that failed scores 0 and shows its rows. */
export function toResult(
  key: string,
  episode: Episode,
  { rows, limits, partition, reward, incompleteEpisodes, ownReward, solution }: ResultOptions,
): ResultFrame {
  const assembly = toTrainerRows(episode, { rows, limits, evaluation: partition === 'val', reward, incompleteEpisodes, ownReward })
  const turns = episode.trajectories.flatMap((trajectory) => trajectory.turns)
  const arrays: Record<string, ChannelArray> = {}
  for (const [index, { tokenIds, lossMask, rolloutLogprobs }] of assembly.rows.entries()) {
    arrays[`ids.${index}`] = tokenIds
    arrays[`mask.${index}`] = lossMask
    arrays[`logprobs.${index}`] = rolloutLogprobs
  }
  const message: ChannelResult = {
    type: 'result',
    key,
    status: assembly.status,
    stopReason: episode.stopReason,
    reward: episode.reward,
    scores: episode.scores,
    error: assembly.error && toFailure(assembly.error),
    turns: turns.length,
    generateMs: duration(turns.map(({ timing }) => timing)),
    toolMs: duration(episode.toolCalls.map(({ timing }) => timing)),
    rows: assembly.rows.map(({ agent, trajectory, promptLength, tokenIds, minVersion, maxVersion, turns: path, reward: rowReward }) => ({
      agent,
      trajectory,
      promptLength,
      length: tokenIds.length,
      minVersion,
      maxVersion,
      turns: [...path],
      reward: rowReward,
    })),
    omitted: assembly.omitted,
    answer: episode.answer,
    solution: solution?.(episode) ?? episode.answer,
  }
  return { message, arrays, assembly }
}

/** The result of a rollout without an episode. */
export function toFailedResult(key: string, error: ErrorRecord): ResultFrame {
  const message: ChannelResult = {
    type: 'result',
    key,
    status: 'failed',
    stopReason: error.code === 'ROLLOUT_CANCELLED' ? 'cancelled' : null,
    reward: null,
    scores: {},
    error: toFailure(error),
    turns: 0,
    generateMs: 0,
    toolMs: 0,
    rows: [],
    omitted: {},
    answer: null,
    solution: null,
  }
  return { message, arrays: {}, assembly: null }
}
