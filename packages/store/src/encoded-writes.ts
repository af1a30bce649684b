import type { DatabaseSync } from 'node:sqlite'
import {
  type AttemptWorker,
  type EndedAttempt,
  isInfrastructureFailure,
  type RolloutRequest,
  type RunRolloutStatus,
  type RunStore,
  type StepRecord,
  type SubmissionStore,
} from '@aworld-train/core'
import { createAttemptWrites } from './attempt-rows.ts'
import type { CommitQueue } from './commit-queue.ts'
import { plainCalls } from './reward-calls.ts'
import type { RolloutColumns } from './rollout-columns.ts'
import type { EpisodeBody, RunQueries } from './run-queries.ts'
import type { SegmentPosition } from './segment-writer.ts'
import { createSampleWrites } from './step-samples.ts'
import { conflict } from './store-error.ts'
import { lastFinished, noteTakenBack, runAgain } from './taken-back.ts'
import type { TurnRecord } from './turn-record.ts'

export interface EncodedTurn {
  /** Id of the invocation. */
  readonly trajectory: string
  readonly agent: string
  readonly index: number
  /** Index of the turn that its tokens continue, whose row must exist. */
  readonly parent: number | null
  readonly record: TurnRecord
}

/** An attempt's result without the contents of its turns. */
export interface EncodedEpisode {
  readonly rollout: string
  readonly attempt: number
  /** JSON, as the database keeps it. */
  readonly body: string
  readonly columns: RolloutColumns
}

/** The writes of a run in a form that can move between threads. Times are Unix milliseconds. */
export interface EncodedWrites extends Pick<RunStore & SubmissionStore, 'releaseSubmission' | 'keepScores' | 'commitStep' | 'setState'> {
  queue(request: RolloutRequest, at: number): Promise<void>
  keepSubmission(request: RolloutRequest, at: number): Promise<void>
  begin(request: RolloutRequest, at: number, before: EndedAttempt | null): ReturnType<RunStore['begin']>
  appendTurn(rollout: string, attempt: number, turn: EncodedTurn): Promise<void>
  cancel(rollout: string, attempt: number | null, at: number): Promise<void>
  /** Takes results back, so that their rollouts run again. One without a result is passed over. */
  takeBack(rollouts: readonly string[]): Promise<void>
  /** Says that training goes on after `step`. Rollouts for later steps that are not committed then belong to no step. */
  discardStepsAfter(step: number): Promise<void>
  /** `missing` are turns of the episode that may not be stored yet. */
  finish(episode: EncodedEpisode, missing: readonly EncodedTurn[], worker: AttemptWorker | null): Promise<void>
}

interface StoredRollout {
  readonly id: number
  readonly task_id: string
  readonly attempt: number
  readonly status: RunRolloutStatus
  /** `null` before the first attempt. */
  readonly started_at: number | null
}

/** Creates the writes of a run. Each is part of one transaction: refused before its first change, or whole. */
export function createEncodedWrites(database: DatabaseSync, commits: CommitQueue, queries: RunQueries): EncodedWrites {
  const findRollout = database.prepare('SELECT id, task_id, attempt, status, started_at FROM rollouts WHERE key = ?')
  const insertRollout = database.prepare(
    "INSERT INTO rollouts(key, group_id, task_id, kind, split, step, sample, status, attempt, queued_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', 0, ?) RETURNING id, task_id, attempt, status, started_at",
  )
  const upsertRequest = database.prepare(
    'INSERT INTO requests(rollout, body) VALUES (?, ?) ON CONFLICT(rollout) DO UPDATE SET body = excluded.body',
  )
  const queueAgain = database.prepare("UPDATE rollouts SET status = 'queued', queued_at = ?, ended_at = NULL, error = NULL WHERE id = ?")
  // A rollout that begins again has not waited for a slot in between.
  const beginAttempt = database.prepare(
    "UPDATE rollouts SET queue_ms = CASE status WHEN 'queued' THEN ?1 - queued_at ELSE queue_ms END, status = 'running', started_at = ?1, ended_at = NULL, error = NULL, attempt = ?2 WHERE id = ?3",
  )
  const cancelRollout = database.prepare(
    "UPDATE rollouts SET status = 'cancelled', ended_at = ?1 WHERE key = ?2 AND CASE WHEN ?3 IS NULL THEN status = 'queued' ELSE status = 'running' AND attempt = ?3 END",
  )
  const finishRollout = database.prepare(`UPDATE rollouts SET status = 'done', finished = 1 + ${lastFinished},
    started_at = ?, ended_at = ?, engine_ms = ?, tools_ms = ?, reward = ?, stop_reason = ?, turns = ?, tool_calls = ?, sampled_tokens = ?, cost = ?, error = ?, answer = ?
    WHERE id = ?`)
  const markSubmitted = database.prepare('INSERT INTO submitted VALUES (?) ON CONFLICT DO NOTHING')
  const unmarkSubmitted = database.prepare('DELETE FROM submitted WHERE rollout = (SELECT id FROM rollouts WHERE key = ?)')
  const keepReason = database.prepare("UPDATE rollouts SET error = ? WHERE key = ? AND status <> 'done'")
  const findTurn = database.prepare(
    'SELECT crc32, completion_length FROM turns WHERE rollout = ? AND attempt = ? AND trajectory = ? AND turn = ?',
  )
  const insertTurn = database.prepare(
    'INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(rollout, attempt, trajectory, turn) DO NOTHING',
  )
  const insertEpisode = database.prepare('INSERT INTO episodes(rollout, body) VALUES (?, ?)')
  const findEpisode = database.prepare('SELECT body FROM episodes WHERE rollout = ?')
  const changeEpisode = database.prepare('UPDATE episodes SET body = ? WHERE rollout = ?')
  const changeResult = database.prepare('UPDATE rollouts SET reward = ?, stop_reason = ?, error = ? WHERE id = ?')
  const deleteEpisode = database.prepare('DELETE FROM episodes WHERE rollout = ?')
  const takeBack = database.prepare(`${runAgain} WHERE id = ?`)
  const findStep = database.prepare('SELECT 1 FROM steps WHERE step = ?')
  const insertStep = database.prepare('INSERT INTO steps VALUES (?, ?, ?, ?, ?)')
  const trainedIn = database.prepare('SELECT step FROM trained WHERE rollout = ?')
  const insertTrained = database.prepare('INSERT INTO trained VALUES (?, ?, ?)')
  const insertSamples = createSampleWrites(database)
  const attempts = createAttemptWrites(database)
  const discardSteps = database.prepare(
    "UPDATE rollouts SET step = NULL WHERE split = 'train' AND step > ? AND id NOT IN (SELECT rollout FROM trained)",
  )
  const carryGroups = database.prepare(
    "UPDATE rollouts SET step = ? WHERE split = 'train' AND group_id IN (SELECT value FROM json_each(?))",
  )
  const upsertState = database.prepare('INSERT INTO state(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value')

  function begun(key: string): StoredRollout {
    const row = findRollout.get(key) as StoredRollout | undefined
    if (row === undefined || row.started_at === null) throw conflict(`Rollout ${key} was never begun`)
    return row
  }

  function currentRollout(key: string, attempt: number): StoredRollout {
    const row = begun(key)
    if (row.status === 'done') throw conflict(`Rollout ${key} has its result already`)
    if (row.attempt !== attempt) throw conflict(`Attempt ${attempt} of rollout ${key} was superseded by attempt ${row.attempt}`)
    return row
  }

  /** True if the very same turn is already stored. Throws if another turn has its place. */
  function isPresent(rollout: StoredRollout, { trajectory, index, record }: EncodedTurn): boolean {
    const stored = findTurn.get(rollout.id, rollout.attempt, trajectory, index)
    if (!stored) return false
    if (stored['crc32'] === record.crc32 && stored['completion_length'] === record.completionLength) return true
    throw conflict(`Turn ${index} of ${trajectory} was recorded with other tokens`)
  }

  /** Adds a turn. False if its place is already taken, by this turn or another one. */
  function insert(rollout: StoredRollout, { trajectory, agent, index, record }: EncodedTurn, at: SegmentPosition): boolean {
    const { body, prefixLength, suffixLength, completionLength, crc32 } = record
    const { id, attempt } = rollout
    const { segment, offset } = at
    const done = insertTurn.run(
      id,
      attempt,
      trajectory,
      index,
      agent,
      body,
      prefixLength,
      suffixLength,
      completionLength,
      segment,
      offset,
      crc32,
    )
    return done.changes === 1
  }

  /** Adds a turn after its parent, once. */
  function addTurn(key: string, attempt: number, turn: EncodedTurn, at: SegmentPosition): void {
    const row = currentRollout(key, attempt)
    const { trajectory, index, parent } = turn
    if (parent !== null && !findTurn.get(row.id, attempt, trajectory, parent))
      throw conflict(`Turn ${index} of ${trajectory} continues turn ${parent}, which was not recorded`)
    if (!insert(row, turn, at)) isPresent(row, turn)
  }

  return {
    queue(request, at) {
      const body = JSON.stringify(request)
      return commits.commit({ synced: false, apply: () => void addToQueue(request, body, at) })
    },

    keepSubmission(request, at) {
      const body = JSON.stringify(request)
      return commits.commit({
        synced: true,
        apply() {
          const id = addToQueue(request, body, at)
          if (id !== null) markSubmitted.run(id)
        },
      })
    },

    releaseSubmission: (rollout, error) =>
      commits.commit({
        synced: true,
        apply() {
          unmarkSubmitted.run(rollout)
          keepReason.run(JSON.stringify(error), rollout)
        },
      }),

    begin(request, at, before) {
      const body = JSON.stringify(request)
      return commits.commit({
        synced: false,
        apply() {
          const row = (findRollout.get(request.key) as StoredRollout | undefined) ?? insertWaiting(request, body, at)
          const { id, task_id: task } = row
          if (task !== request.task.id) throw conflict(`Rollout ${request.key} is of task "${task}", not of "${request.task.id}"`)
          const episode = row.status === 'done' ? queries.episode(request.key) : null
          const isAgain = episode !== null && isInfrastructureFailure(episode)
          if (row.status === 'done' && !isAgain) return { attempt: row.attempt, episode }
          if (isAgain) {
            noteTakenBack(database)
            deleteEpisode.run(id)
            takeBack.run(id)
          }
          const attempt = row.started_at === null ? 0 : row.attempt + 1
          if (attempt > 0) {
            attempts.keepEnded(id, before ?? (isAgain ? { worker: null, endedAt: episode.timing.endedAt, error: episode.error! } : null))
            upsertRequest.run(id, body)
          }
          beginAttempt.run(at, attempt, id)
          return { attempt, episode: null }
        },
      })
    },

    appendTurn: (rollout, attempt, turn) =>
      commits.commit({
        chunks: [turn.record.bytes],
        synced: false,
        apply: (at) => addTurn(rollout, attempt, turn, at),
      }),

    finish: ({ rollout, attempt, body, columns }, missing, worker) =>
      commits.commit({
        chunks: missing.map(({ record }) => record.bytes),
        synced: true,
        apply(at) {
          const row = currentRollout(rollout, attempt)
          // A turn may continue one that is added with it, so only its own tokens are checked here.
          for (const turn of missing) isPresent(row, turn)
          let { offset } = at
          for (const turn of missing) {
            insert(row, turn, { segment: at.segment, offset })
            offset += turn.record.bytes.byteLength
          }
          insertEpisode.run(row.id, body)
          const { startedAt, endedAt, engineMs, toolsMs, reward, stopReason, turns, toolCalls, sampledTokens, cost, error, answer } =
            columns
          const result = [reward, stopReason, turns, toolCalls, sampledTokens, cost, error, answer]
          finishRollout.run(startedAt, endedAt, engineMs, toolsMs, ...result, row.id)
          if (worker !== null) attempts.keepWorker(row.id, worker)
          unmarkSubmitted.run(rollout)
        },
      }),

    keepScores: (scores) =>
      commits.commit({
        synced: true,
        apply() {
          const rows = scores.map(({ rollout }) => finished(rollout))
          // Readers that have added up the results without these scores can tell.
          noteTakenBack(database)
          for (const [index, { rollout: _, rewardTrajectories, ...score }] of scores.entries()) {
            const { id } = rows[index]!
            const body = JSON.parse(findEpisode.get(id)!['body'] as string) as EpisodeBody
            const { reward, stopReason, error = null } = score
            changeEpisode.run(
              JSON.stringify({ ...body, ...score, ...plainCalls({ rewardTrajectories }), groupScored: true } satisfies EpisodeBody),
              id,
            )
            changeResult.run(reward, stopReason, error && JSON.stringify(error), id)
          }
        },
      }),

    cancel: (rollout, attempt, at) => commits.commit({ synced: false, apply: () => void cancelRollout.run(at, rollout, attempt) }),

    async takeBack(rollouts) {
      await commits.commit({
        synced: true,
        apply() {
          const episodes = rollouts.map((key) => queries.episode(key)).filter((episode) => episode !== null)
          if (episodes.length > 0) noteTakenBack(database)
          for (const { rollout, error, timing } of episodes) {
            const { id } = begun(rollout)
            if (error) attempts.keepEnded(id, { worker: null, endedAt: timing.endedAt, error })
            deleteEpisode.run(id)
            takeBack.run(id)
          }
        },
      })
    },

    async discardStepsAfter(step) {
      await commits.commit({
        synced: true,
        apply() {
          noteTakenBack(database)
          discardSteps.run(step)
        },
      })
    },

    async commitStep(step, samples = []) {
      await commits.commit({
        synced: true,
        apply() {
          if (findStep.get(step.step)) {
            if (
              sameStep(
                queries.steps().find((other) => other.step === step.step),
                step,
              )
            )
              return
            throw conflict(`Step ${step.step} was committed already, with other rollouts`)
          }
          const ids = step.rollouts.map((key) => trainable(key))
          if (new Set(ids).size !== ids.length) throw conflict(`Step ${step.step} names a rollout twice`)
          const rows = samples.map((sample) => [begun(sample.rollout).id, sample] as const)
          insertStep.run(step.step, step.weightVersion, step.checkpoint, JSON.stringify(step.metrics), Date.now())
          for (const [position, id] of ids.entries()) insertTrained.run(id, step.step, position)
          insertSamples(step.step, rows)
          if (step.carriedGroups?.length) carryGroups.run(step.step + 1, JSON.stringify(step.carriedGroups))
        },
      })
    },

    async setState(key, value) {
      const text = JSON.stringify(value) ?? 'null'
      await commits.commit({ synced: true, apply: () => void upsertState.run(key, text) })
    },
  }

  function insertWaiting(request: RolloutRequest, body: string, at: number): StoredRollout {
    const { key, group, task, kind = task.dataSource, split, step = null, sample } = request
    const row = insertRollout.get(key, group, task.id, kind, split, step, sample, at) as unknown as StoredRollout
    upsertRequest.run(row.id, body)
    return row
  }

  /** Returns the row that waits; `null` if the rollout has its result. */
  function addToQueue(request: RolloutRequest, body: string, at: number): number | null {
    const row = findRollout.get(request.key) as StoredRollout | undefined
    if (row?.status === 'done') return null
    if (row && row.status !== 'queued') queueAgain.run(at, row.id)
    return (row ?? insertWaiting(request, body, at)).id
  }

  function finished(key: string): StoredRollout {
    const row = findRollout.get(key) as StoredRollout | undefined
    if (row?.status !== 'done') throw conflict(`Rollout ${key} has no result and cannot be scored`)
    return row
  }

  function trainable(key: string): number {
    const row = findRollout.get(key) as StoredRollout | undefined
    if (row?.status !== 'done') throw conflict(`Rollout ${key} has no result and cannot be marked as trained`)
    const earlier = trainedIn.get(row.id)
    if (earlier) throw conflict(`Rollout ${key} was trained in step ${earlier['step']} already`)
    return row.id
  }
}

function sameStep(a: StepRecord | undefined, b: StepRecord): boolean {
  return a?.weightVersion === b.weightVersion && a.checkpoint === b.checkpoint && a.rollouts.join('\n') === b.rollouts.join('\n')
}
