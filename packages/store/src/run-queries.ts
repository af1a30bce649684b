import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import {
  type AgentTokens,
  type AttemptRow,
  compareIds,
  createAgentTokens,
  type Episode,
  type EpisodeReader,
  type ErrorRecord,
  type FailureCount,
  type RolloutRecord,
  type RolloutRequest,
  type RunHealth,
  type RunProgress,
  type RunRolloutStatus,
  type SampleSummary,
  type StepRecord,
  type StepSample,
  type SubmissionStore,
  type Trajectory,
  type Turn,
} from '@aworld-train/core'
import { createAttemptReads } from './attempt-rows.ts'
import { createFinishedTotals, type FinishedTotals } from './finished-totals.ts'
import { createHealthReads } from './health-samples.ts'
import { createKindRewardReads, type KindRewards } from './kind-rewards.ts'
import { type PlainCalls, readCalls } from './reward-calls.ts'
import { createRolloutRowReads, type RolloutFilter, type RolloutRowReads, shownStatus, whereOf } from './rollout-rows.ts'
import { segmentPath } from './segment-writer.ts'
import { createSampleReads, type SampleTokens } from './step-samples.ts'
import { corrupt, toStoreError } from './store-error.ts'
import { timesTakenBack } from './taken-back.ts'
import { fromTurnRecord } from './turn-record.ts'

export interface RunCounts {
  readonly rollouts: number
  readonly finished: number
  readonly trained: number
  /** Number of turns of every attempt, including superseded ones. */
  readonly turns: number
  /** Number of those turns that are a policy's and have sampled tokens. */
  readonly sampledTurns: number
  /** Tokens of those turns, as recorded. */
  readonly sampledTokens: number
}

/** The turns of a rollout's attempt so far, for each invocation in their order. */
export interface AttemptTurns {
  readonly attempt: number
  /** Keyed by the id of the invocation. */
  readonly trajectories: ReadonlyMap<string, readonly Turn[]>
}

/** A recorded model call that sampled tokens, however its attempt ended. */
export interface RecordedCall {
  /** Key of the rollout. */
  readonly key: string
  readonly attempt: number
  /** Number of sampled tokens. */
  readonly tokens: number
  /** Whether its tokens are lost, because they were damaged on disk. */
  readonly isLost?: boolean
}

/** Reads of a run, for its owner and for any reader. */
export interface RunQueries
  extends EpisodeReader,
    RolloutRowReads,
    Pick<SubmissionStore, 'submissions'>,
    Pick<RunProgress, 'steps' | 'getState'> {
  /** Episodes of the rollouts that have one, in the order in which they were queued. */
  episodes(filter?: RolloutFilter): Iterable<Episode>
  /**
   * Turns of a rollout, also while it runs. Whether a turn was delivered is certain only once the rollout has its result.
   * `null` for an unknown rollout.
   */
  turnsOf(key: string): AttemptTurns | null
  /** The attempts of a rollout in their order; none before its first. */
  attempts(key: string): AttemptRow[]
  /** The fate of the rows of a step, of a rollout, or of a rollout in a step, in the order of the batch. */
  samples(filter: { readonly step?: number | undefined; readonly rollout?: string | undefined }): StepSample[]
  /** The fate of the rows of these rollouts, in the order of steps and batches. */
  samplesOf(rollouts: readonly string[]): SampleSummary[]
  /** Sampled tokens of a trained step by their fate; `reason` is `null` for trained ones. */
  sampleTokens(step: number): SampleTokens[]
  /** The fate of each agent's tokens, as far as steps and evaluations tell. Reads every turn. */
  agentTokens(): Readonly<Record<string, AgentTokens>>
  /** The steps, without the keys of their rollouts, which are many in a long run. */
  stepMetrics(): Omit<StepRecord, 'rollouts'>[]
  /**
   * Totals of the rollouts that finished after place `after` in the order of finishing, and of these training steps, whose
   * rollouts may have finished before.
   */
  finishedTotals(after: number, steps?: readonly number[]): FinishedTotals
  /** Rewards of a training step by the kinds of its tasks; without `step` those of all steps, in their order. */
  kindRewards(step?: number): KindRewards[]
  /** Number of rollouts of each status. */
  statuses(): Readonly<Record<RunRolloutStatus, number>>
  /** Number of episodes of each split. */
  splits(): Readonly<Record<string, number>>
  /** Number of episodes that ended for each reason. */
  stopReasons(): Readonly<Record<string, number>>
  /** Reasons why rollouts failed, the most frequent first. */
  failures(): FailureCount[]
  /** Keys of the first `limit` rollouts with a call that did not parse. */
  unparsed(limit: number): string[]
  /** Calls that sampled tokens, in every attempt of every rollout. */
  calls(): Iterable<RecordedCall>
  /**
   * How often results were taken back since the run began, because they were lost or their steps discarded. A reader that has
   * added results up then begins again.
   */
  timesTakenBack(): number
  /** Health of the owner after this Unix millisecond. */
  health(after: number): RunHealth
  /** Reads every turn. */
  counts(): RunCounts
  /** Tokens of attempts that never get a result, because a later attempt began or they were given up. */
  supersededTokens(): number
  close(): void
}

/** An episode's body in the database. It has only the indices of its turns and whether they were delivered. */
export type EpisodeBody = Omit<Episode, 'trajectories' | 'rewardTrajectories'> &
  PlainCalls & {
    readonly trajectories: readonly (Omit<Trajectory, 'turns'> & { readonly turns: readonly (readonly [number, Turn['delivered']])[] })[]
  }

interface TurnRow {
  readonly trajectory: string
  readonly turn: number
  readonly body: string
  readonly prefix_length: number
  readonly suffix_length: number
  readonly completion_length: number
  readonly segment: number
  readonly byte_offset: number
  readonly crc32: number
}

/**
 * Prepares the reads of the run at `path` over an open database, which stays the caller's. `isOwned` says whether a process works on the
 * run. The reads throw STORE_CORRUPT.
 */
export function createRunQueries(path: string, database: DatabaseSync, isOwned = () => true): RunQueries {
  const segments = new Map<number, number>()
  // An episode whose tokens are lost is no result for a resumed run.
  const byKey = database.prepare(`SELECT e.rollout, e.body FROM rollouts r JOIN episodes e ON e.rollout = r.id WHERE r.key = ?
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.rollout = r.id AND t.attempt = r.attempt AND t.segment = 0)`)
  const byId = database.prepare('SELECT rollout, body FROM episodes WHERE rollout = ?')
  const countBy = (column: 'split' | 'stop_reason') =>
    database.prepare(
      `SELECT ${column} AS name, count(*) AS episodes FROM rollouts WHERE status = 'done' GROUP BY ${column} ORDER BY ${column}`,
    )
  const bySplit = countBy('split')
  const byStopReason = countBy('stop_reason')
  // With min(), SQLite takes the other columns from the row that has the minimum.
  const failures = database.prepare(`SELECT error ->> '$.code' AS code, count(*) AS count, min(finished) AS first, key AS rollout,
    error ->> '$.message' AS message, error ->> '$.source' AS source FROM rollouts
    WHERE status = 'done' AND stop_reason IN ('failed', 'no-model-call', 'time-limit') AND error IS NOT NULL
    GROUP BY code, source ORDER BY count DESC, first`)
  const rows = createRolloutRowReads(database, isOwned)
  const samples = createSampleReads(database)
  const sampledByAgent = database.prepare(`SELECT t.agent, sum(t.completion_length) AS tokens,
    sum(t.completion_length * (r.split <> 'train' AND r.status = 'done' AND t.attempt = r.attempt)) AS evaluation
    FROM turns t JOIN rollouts r ON r.id = t.rollout GROUP BY t.agent HAVING tokens > 0 ORDER BY t.agent`)

  function agentTokens(): Readonly<Record<string, AgentTokens>> {
    const counts = createAgentTokens()
    for (const { agent, tokens, evaluation } of sampledByAgent.all() as unknown as {
      agent: string
      tokens: number
      evaluation: number
    }[]) {
      counts.sampled(agent, tokens)
      counts.add(agent, evaluation, 'evaluation')
    }
    for (const { agent, tokens, reason } of samples.allTokens()) counts.add(agent, tokens, reason)
    return counts.byAgent
  }

  const request = database.prepare(
    'SELECT q.body, r.status, r.attempt, r.error FROM rollouts r JOIN requests q ON q.rollout = r.id WHERE r.key = ?',
  )
  const current = database.prepare(
    'SELECT r.id, r.attempt, e.body FROM rollouts r LEFT JOIN episodes e ON e.rollout = r.id WHERE r.key = ?',
  )
  const turnsOfAttempt = database.prepare('SELECT * FROM turns WHERE rollout = ? AND attempt = ? ORDER BY trajectory, turn')
  const allSteps = database.prepare('SELECT step, weight_version, checkpoint, metrics FROM steps ORDER BY step')
  // Done rollouts are the rest, because counting them would mean reading their rows.
  const byStatus = database.prepare(
    "SELECT status, count(*) AS rollouts FROM rollouts WHERE status <> 'done' GROUP BY status UNION ALL SELECT 'done', count(*) FROM rollouts",
  )
  const trainedIn = database.prepare('SELECT r.key FROM trained t JOIN rollouts r ON r.id = t.rollout WHERE t.step = ? ORDER BY t.position')
  const sampledCalls = database.prepare(
    'SELECT r.key, t.attempt, t.completion_length AS tokens, t.segment FROM turns t JOIN rollouts r ON r.id = t.rollout WHERE t.completion_length > 0 ORDER BY t.rollout',
  )
  const withUnparsed = database.prepare(
    `SELECT r.key FROM rollouts r WHERE EXISTS (SELECT 1 FROM turns t WHERE t.rollout = r.id AND t.body LIKE '%"unparsed":["%') ORDER BY r.id LIMIT ?`,
  )
  const state = database.prepare('SELECT value FROM state WHERE key = ?')
  const times = database.prepare(`SELECT ${timesTakenBack} AS times`)
  const counts = database.prepare(`SELECT
    (SELECT count(*) FROM rollouts) AS rollouts, (SELECT count(*) FROM episodes) AS finished, (SELECT count(*) FROM trained) AS trained,
    (SELECT count(*) FROM turns) AS turns, (SELECT count(*) FROM turns WHERE completion_length > 0) AS sampledTurns, (SELECT coalesce(sum(completion_length), 0) FROM turns) AS sampledTokens`)
  // CROSS JOIN keeps the order: first the few rollouts with several attempts, then only their turns.
  const superseded = database.prepare(`SELECT
    (SELECT coalesce(sum(t.completion_length), 0) FROM rollouts r CROSS JOIN turns t ON t.rollout = r.id AND t.attempt < r.attempt WHERE r.attempt > 0)
    + (SELECT coalesce(sum(t.completion_length), 0) FROM rollouts r CROSS JOIN turns t ON t.rollout = r.id AND t.attempt = r.attempt
      WHERE r.status <> 'done' AND r.status IN ('queued', 'cancelled', 'interrupted', ?)) AS tokens`)

  /** Makes errors of SQLite and of files name their run. */
  function named<Parameters extends unknown[], Result>(read: (...parameters: Parameters) => Result): (...parameters: Parameters) => Result {
    return (...parameters) => {
      try {
        return read(...parameters)
      } catch (error) {
        throw toStoreError(error, path)
      }
    }
  }

  function readBytes(row: TurnRow): Uint8Array {
    const length = (row.suffix_length + 2 * row.completion_length) * 4
    const bytes = new Uint8Array(length)
    if (length === 0) return bytes
    if (row.segment === 0) throw corrupt(path, `the tokens of turn ${row.turn} of ${row.trajectory} were damaged and are lost`)
    const file = segments.get(row.segment) ?? openSync(segmentPath(join(path, 'segments'), row.segment), 'r')
    segments.set(row.segment, file)
    const read = readSync(file, bytes, 0, length, row.byte_offset)
    if (read !== length || crc32(bytes) !== row.crc32) {
      throw corrupt(
        path,
        `the tokens of turn ${row.turn} of ${row.trajectory} in segment ${row.segment} at byte ${row.byte_offset} are not the recorded ones`,
      )
    }
    return bytes
  }

  function readTurns(rollout: number, attempt: number): Map<string, Map<number, Turn>> {
    const turns = new Map<string, Map<number, Turn>>()
    for (const row of turnsOfAttempt.all(rollout, attempt) as unknown as TurnRow[]) {
      const before = turns.get(row.trajectory) ?? new Map<number, Turn>()
      turns.set(row.trajectory, before)
      const tokens = { prefixLength: row.prefix_length, suffixLength: row.suffix_length, completionLength: row.completion_length }
      before.set(
        row.turn,
        fromTurnRecord(row.body, tokens, readBytes(row), (index) => before.get(index)),
      )
    }
    return turns
  }

  const read = named((row: { rollout: number; body: string }): Episode => {
    const body = JSON.parse(row.body) as EpisodeBody
    const hasTurns = body.trajectories.some((trajectory) => trajectory.turns.length > 0)
    const turns: ReadonlyMap<string, ReadonlyMap<number, Turn>> = hasTurns ? readTurns(row.rollout, body.attempt) : new Map()
    const trajectories = body.trajectories.map((trajectory) => ({
      ...trajectory,
      turns: trajectory.turns.map(([index, delivered]) => {
        const turn = turns.get(trajectory.id)?.get(index)
        if (!turn) throw corrupt(path, `turn ${index} of ${trajectory.id} in ${body.rollout} is missing`)
        return { ...turn, delivered }
      }),
    }))
    return { ...body, trajectories, ...readCalls(body) } as Episode
  })

  function turnsOf(key: string): AttemptTurns | null {
    const found = current.get(key) as { id: number; attempt: number; body: string | null } | undefined
    if (!found) return null
    const { trajectories = [] } = found.body === null ? {} : (JSON.parse(found.body) as EpisodeBody)
    const delivered = new Map(trajectories.map(({ id, turns }) => [id, new Map(turns)]))
    const read = [...readTurns(found.id, found.attempt)].sort(([a], [b]) => compareIds(a, b))
    const attemptTurns = new Map<string, Turn[]>()
    for (const [id, turns] of read) {
      const ofInvocation = delivered.get(id)
      attemptTurns.set(
        id,
        Array.from(turns.values(), (turn) => ({ ...turn, delivered: ofInvocation?.get(turn.index) ?? turn.delivered })),
      )
    }
    return { attempt: found.attempt, trajectories: attemptTurns }
  }

  const idsOf = named((filter: RolloutFilter) => {
    const { where, values } = whereOf(filter)
    return database.prepare(`SELECT id FROM rollouts WHERE ${where} AND status = 'done' ORDER BY id`).all(...values)
  })
  const stepMetrics = named((): Omit<StepRecord, 'rollouts'>[] =>
    (allSteps.all() as unknown as { step: number; weight_version: number; checkpoint: string | null; metrics: string }[]).map((row) => ({
      step: row.step,
      weightVersion: row.weight_version,
      checkpoint: row.checkpoint,
      metrics: JSON.parse(row.metrics) as Record<string, number>,
    })),
  )
  const counted = (rows: Record<string, unknown>[]) =>
    Object.fromEntries(rows.map(({ name, episodes }) => [name as string, episodes as number]))

  return {
    rolloutRows: named(rows.rolloutRows),
    rolloutRow: named(rows.rolloutRow),
    turnsOf: named(turnsOf),
    attempts: named(createAttemptReads(database)),
    samples: named(samples.rows),
    samplesOf: named(samples.of),
    sampleTokens: named(samples.tokens),
    agentTokens: named(agentTokens),
    finishedTotals: named(createFinishedTotals(database, rows)),
    kindRewards: named(createKindRewardReads(database)),
    statuses: named(() => {
      const owned = isOwned()
      const counts = { queued: 0, running: 0, done: 0, cancelled: 0, interrupted: 0 }
      for (const { status, rollouts } of byStatus.all() as unknown as { status: RunRolloutStatus; rollouts: number }[]) {
        counts[shownStatus(status, owned)] += rollouts
        // The row of `done` counts all rollouts.
        if (status !== 'done') counts.done -= rollouts
      }
      return counts
    }),
    unparsed: named((limit) => withUnparsed.all(limit).map(({ key }) => key as string)),
    splits: named(() => counted(bySplit.all())),
    stopReasons: named(() => counted(byStopReason.all())),
    failures: named(() => failures.all().map(({ first: _, ...failure }) => failure as unknown as FailureCount)),
    stepMetrics,
    steps: named(() =>
      stepMetrics().map((record) => ({ ...record, rollouts: trainedIn.all(record.step).map(({ key }) => key as string) })),
    ),
    rollout: named((key) => {
      const row = request.get(key) as (Pick<RolloutRecord, 'status' | 'attempt'> & { body: string; error: string | null }) | undefined
      if (!row) return null
      const { body, status, attempt } = row
      // The error of a result is in its episode.
      const error = status === 'done' || row.error === null ? null : (JSON.parse(row.error) as ErrorRecord)
      return { request: JSON.parse(body) as RolloutRecord['request'], status: shownStatus(status, isOwned()), attempt, error }
    }),
    episode: named((rollout) => {
      const row = byKey.get(rollout)
      return row ? read(row as { rollout: number; body: string }) : null
    }),
    *episodes(filter = {}) {
      for (const { id } of idsOf(filter)) yield read(byId.get(id as number) as { rollout: number; body: string })
    },
    *calls() {
      type Row = Omit<RecordedCall, 'isLost'> & { readonly segment: number }
      for (const { segment, ...call } of sampledCalls.all() as unknown as Row[]) yield { ...call, ...(segment === 0 && { isLost: true }) }
    },
    submissions: named(() =>
      database
        .prepare(
          "SELECT q.body FROM submitted s JOIN rollouts r ON r.id = s.rollout JOIN requests q ON q.rollout = r.id WHERE r.status <> 'done' ORDER BY r.id",
        )
        .all()
        .map(({ body }) => JSON.parse(body as string) as RolloutRequest),
    ),
    getState: named((key) => {
      const row = state.get(key)
      return row ? JSON.parse(row['value'] as string) : undefined
    }),
    timesTakenBack: named(() => times.get()!['times'] as number),
    health: named(createHealthReads(database)),
    counts: named(() => ({ ...(counts.get() as unknown as RunCounts) })),
    supersededTokens: named(() => superseded.get(isOwned() ? null : 'running')!['tokens'] as number),
    close() {
      for (const file of segments.values()) closeSync(file)
      segments.clear()
    },
  }
}
