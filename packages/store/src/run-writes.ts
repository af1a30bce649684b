import { type Episode, preciseNow, type RolloutWriter, type RunProgress, type SubmissionStore, type Turn } from '@aworld-train/core'
import type { EncodedTurn, EncodedWrites } from './encoded-writes.ts'
import { plainCalls } from './reward-calls.ts'
import { toRolloutColumns } from './rollout-columns.ts'
import type { EpisodeBody } from './run-queries.ts'
import { createTurnCache } from './turn-cache.ts'
import { toTurnRecord } from './turn-record.ts'

export type RunWrites = RolloutWriter &
  Omit<SubmissionStore, 'submissions'> &
  Pick<RunProgress, 'commitStep' | 'setState'> &
  Pick<EncodedWrites, 'discardStepsAfter' | 'takeBack'>

/** Creates the writes of a run, which encode turns in the calling thread. */
export function createRunWrites({
  queue,
  keepSubmission,
  releaseSubmission,
  begin,
  appendTurn,
  finish,
  cancel,
  ...progress
}: EncodedWrites): RunWrites {
  const cache = createTurnCache()

  function encode(rollout: string, attempt: number, trajectory: string, turn: Turn): EncodedTurn {
    const parent = turn.parent === null ? null : cache.get(rollout, attempt, trajectory, turn.parent)
    const record = toTurnRecord(turn, parent)
    cache.add(rollout, attempt, trajectory, turn)
    return { trajectory, agent: turn.agent, index: turn.index, parent: record.prefixLength > 0 ? turn.parent : null, record }
  }

  return {
    queue: (request) => queue(request, preciseNow()),
    keepSubmission: (request) => keepSubmission(request, preciseNow()),
    releaseSubmission,
    begin: (request, before = null) => begin(request, preciseNow(), before),
    keepScores: progress.keepScores,
    commitStep: progress.commitStep,
    discardStepsAfter: progress.discardStepsAfter,
    takeBack: progress.takeBack,
    setState: progress.setState,
    async cancel(rollout, attempt) {
      await cancel(rollout, attempt, preciseNow())
      cache.drop(rollout)
    },
    async appendTurn(rollout, attempt, trajectory, turn) {
      await appendTurn(rollout, attempt, encode(rollout, attempt, trajectory, turn))
      cache.markStored(rollout, attempt, trajectory, turn.index)
    },
    async finish(episode, worker = null) {
      const { rollout, attempt, trajectories } = episode
      const missing = trajectories.flatMap(({ id, turns }) =>
        turns.filter(({ index }) => !cache.isStored(rollout, attempt, id, index)).map((turn) => encode(rollout, attempt, id, turn)),
      )
      await finish({ rollout, attempt, body: JSON.stringify(toEpisodeBody(episode)), columns: toRolloutColumns(episode) }, missing, worker)
      cache.drop(rollout)
    },
  }
}

function toEpisodeBody(episode: Episode): EpisodeBody {
  const trajectories = episode.trajectories.map((trajectory) => ({
    ...trajectory,
    turns: trajectory.turns.map(({ index, delivered }) => [index, delivered] as const),
  }))
  return { ...episode, trajectories, ...plainCalls(episode) }
}
