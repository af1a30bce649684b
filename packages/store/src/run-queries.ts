import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import type { EpisodeReader, RolloutRecord, RunProgress } from '@aworld-train/core'
import type { Episode, Trajectory, Turn } from '@aworld-train/protocol'
import { segmentPath } from './segment-writer.ts'
import { corrupt, toStoreError } from './store-error.ts'
import { fromTurnRecord } from './turn-record.ts'

export interface RunCounts {
  readonly rollouts: number
  readonly finished: number
  readonly trained: number
  /** Turns of every attempt, superseded ones too. */
  readonly turns: number
  /** How many of those turns are of a policy and have sampled tokens. */
  readonly sampledTurns: number
  /** Tokens of those turns, as recorded. */
  readonly sampledTokens: number
  /** Tokens of attempts that never get a result, because a later attempt began. */
  readonly supersededTokens: number
}

/** A recorded model call that sampled tokens, however its attempt ended. */
export interface RecordedCall {
  /** Key of the rollout. */
  readonly key: string
  readonly attempt: number
  /** How many tokens were sampled. */
  readonly tokens: number
  /** Whether its tokens are lost, because they were damaged on disk. */
  readonly isLost?: boolean
}

/** Reads of a run; the owner's and any reader's. */
export interface RunQueries extends EpisodeReader, Pick<RunProgress, 'steps' | 'getState'> {
  /** Episodes of each split. */
  splits(): Readonly<Record<string, number>>
  /** Calls that sampled tokens, in every attempt of every rollout. */
  calls(): Iterable<RecordedCall>
  counts(): RunCounts
  close(): void
}

/** An episode's body in the database. Of its turns it has only their indices and whether they were delivered. */
export type EpisodeBody = Omit<Episode, 'trajectories'> & {
  readonly trajectories: readonly (Omit<Trajectory, 'turns'> & { readonly turns: readonly (readonly [number, Turn['delivered']])[] })[]
}

interface TurnRow {
  readonly agent: string
  readonly turn: number
  readonly body: string
  readonly prefix_length: number
  readonly suffix_length: number
  readonly completion_length: number
  readonly segment: number
  readonly byte_offset: number
  readonly crc32: number
}

/** Prepares the reads of the run at `path` over an open database, which stays the caller's. They throw STORE_CORRUPT. */
export function createRunQueries(path: string, database: DatabaseSync): RunQueries {
  const segments = new Map<number, number>()
  // A resumed run does not take an episode whose tokens are lost for a result.
  const byKey = database.prepare(`SELECT e.rollout, e.body FROM rollouts r JOIN episodes e ON e.rollout = r.id WHERE r.key = ?
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.rollout = r.id AND t.attempt = r.attempt AND t.segment = 0)`)
  const byId = database.prepare('SELECT rollout, body FROM episodes WHERE rollout = ?')
  const allIds = database.prepare('SELECT rollout AS id FROM episodes ORDER BY rollout')
  const idsOfSplit = database.prepare(
    'SELECT e.rollout AS id FROM rollouts r JOIN episodes e ON e.rollout = r.id WHERE r.split = ? ORDER BY r.id',
  )
  const countOfSplits = database.prepare(
    'SELECT r.split, count(*) AS episodes FROM rollouts r JOIN episodes e ON e.rollout = r.id GROUP BY r.split ORDER BY r.split',
  )
  const request = database.prepare('SELECT request, status, attempt FROM rollouts WHERE key = ?')
  const turnsOf = database.prepare('SELECT * FROM turns WHERE rollout = ? AND attempt = ? ORDER BY agent, turn')
  const allSteps = database.prepare('SELECT step, weight_version, checkpoint, metrics FROM steps ORDER BY step')
  const trainedIn = database.prepare('SELECT r.key FROM trained t JOIN rollouts r ON r.id = t.rollout WHERE t.step = ? ORDER BY t.position')
  const sampledCalls = database.prepare(
    'SELECT r.key, t.attempt, t.completion_length AS tokens, t.segment FROM turns t JOIN rollouts r ON r.id = t.rollout WHERE t.completion_length > 0 ORDER BY t.rollout',
  )
  const state = database.prepare('SELECT value FROM state WHERE key = ?')
  const counts = database.prepare(`SELECT
    (SELECT count(*) FROM rollouts) AS rollouts, (SELECT count(*) FROM episodes) AS finished, (SELECT count(*) FROM trained) AS trained,
    (SELECT count(*) FROM turns) AS turns, (SELECT count(*) FROM turns WHERE completion_length > 0) AS sampledTurns, (SELECT coalesce(sum(completion_length), 0) FROM turns) AS sampledTokens,
    (SELECT coalesce(sum(t.completion_length), 0) FROM turns t JOIN rollouts r ON r.id = t.rollout WHERE t.attempt < r.attempt) AS supersededTokens`)

  function readBytes(row: TurnRow): Uint8Array {
    const length = (row.suffix_length + 2 * row.completion_length) * 4
    const bytes = new Uint8Array(length)
    if (length === 0) return bytes
    const file = segments.get(row.segment) ?? openSync(segmentPath(join(path, 'segments'), row.segment), 'r')
    segments.set(row.segment, file)
    const read = readSync(file, bytes, 0, length, row.byte_offset)
    if (read !== length || crc32(bytes) !== row.crc32) {
      throw corrupt(
        path,
        `the tokens of turn ${row.turn} of ${row.agent} in segment ${row.segment} at byte ${row.byte_offset} are not the recorded ones`,
      )
    }
    return bytes
  }

  function readTurns(rollout: number, attempt: number): Map<string, Map<number, Turn>> {
    const turns = new Map<string, Map<number, Turn>>()
    for (const row of turnsOf.all(rollout, attempt) as unknown as TurnRow[]) {
      const ofAgent = turns.get(row.agent) ?? new Map<number, Turn>()
      turns.set(row.agent, ofAgent)
      const tokens = { prefixLength: row.prefix_length, suffixLength: row.suffix_length, completionLength: row.completion_length }
      ofAgent.set(
        row.turn,
        fromTurnRecord(row.body, tokens, readBytes(row), (index) => ofAgent.get(index)),
      )
    }
    return turns
  }

  function read(row: { rollout: number; body: string }): Episode {
    try {
      const body = JSON.parse(row.body) as EpisodeBody
      const hasTurns = body.trajectories.some((trajectory) => trajectory.turns.length > 0)
      const turns: ReadonlyMap<string, ReadonlyMap<number, Turn>> = hasTurns ? readTurns(row.rollout, body.attempt) : new Map()
      const trajectories = body.trajectories.map((trajectory) => ({
        ...trajectory,
        turns: trajectory.turns.map(([index, delivered]) => {
          const turn = turns.get(trajectory.agent)?.get(index)
          if (!turn) throw corrupt(path, `turn ${index} of ${trajectory.agent} in ${body.rollout} is missing`)
          return { ...turn, delivered }
        }),
      }))
      return { ...body, trajectories }
    } catch (error) {
      throw toStoreError(error, path)
    }
  }

  return {
    steps: () =>
      (allSteps.all() as unknown as { step: number; weight_version: number; checkpoint: string | null; metrics: string }[]).map((row) => ({
        step: row.step,
        weightVersion: row.weight_version,
        rollouts: trainedIn.all(row.step).map(({ key }) => key as string),
        metrics: JSON.parse(row.metrics) as Record<string, number>,
        checkpoint: row.checkpoint,
      })),
    rollout(key) {
      const row = request.get(key) as { request: string; status: RolloutRecord['status']; attempt: number } | undefined
      return row ? { request: JSON.parse(row.request) as RolloutRecord['request'], status: row.status, attempt: row.attempt } : null
    },
    episode(rollout) {
      const row = byKey.get(rollout)
      return row ? read(row as { rollout: number; body: string }) : null
    },
    *episodes({ split } = {}) {
      const ids = split === undefined ? allIds.all() : idsOfSplit.all(split)
      for (const { id } of ids) yield read(byId.get(id as number) as { rollout: number; body: string })
    },
    splits: () => Object.fromEntries(countOfSplits.all().map(({ split, episodes }) => [split as string, episodes as number])),
    *calls() {
      type Row = Omit<RecordedCall, 'isLost'> & { readonly segment: number }
      for (const { segment, ...call } of sampledCalls.all() as unknown as Row[]) yield { ...call, ...(segment === 0 && { isLost: true }) }
    },
    getState(key) {
      const row = state.get(key)
      return row ? JSON.parse(row['value'] as string) : undefined
    },
    counts: () => ({ ...(counts.get() as unknown as RunCounts) }),
    close() {
      for (const file of segments.values()) closeSync(file)
      segments.clear()
    },
  }
}
