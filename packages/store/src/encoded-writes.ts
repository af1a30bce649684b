import type { DatabaseSync } from 'node:sqlite'
import type { RunStore, StepRecord } from '@aworld-train/core'
import type { CommitQueue } from './commit-queue.ts'
import type { RunQueries } from './run-queries.ts'
import type { SegmentPosition } from './segment-writer.ts'
import { conflict } from './store-error.ts'
import type { TurnRecord } from './turn-record.ts'

export interface EncodedTurn {
  readonly agent: string
  readonly index: number
  /** Index of the turn its tokens continue; that row must be there. */
  readonly parent: number | null
  readonly record: TurnRecord
}

/** An attempt's result without what its turns hold. */
export interface EncodedEpisode {
  readonly rollout: string
  readonly attempt: number
  /** As the database keeps it. */
  readonly body: string
}

/** The writes of a run in a form that can move between threads. */
export interface EncodedWrites extends Pick<RunStore, 'begin' | 'commitStep' | 'setState'> {
  appendTurn(rollout: string, attempt: number, turn: EncodedTurn): Promise<void>
  /** `missing` are those turns of the episode that may not be stored. */
  finish(episode: EncodedEpisode, missing: readonly EncodedTurn[]): Promise<void>
}

interface RolloutRow {
  readonly id: number
  readonly attempt: number
  readonly status: 'running' | 'done'
}

/** The writes of a run. Each is one transaction's part: refused before its first change, or whole. */
export function createEncodedWrites(database: DatabaseSync, queue: CommitQueue, queries: RunQueries): EncodedWrites {
  const findRollout = database.prepare('SELECT id, attempt, status FROM rollouts WHERE key = ?')
  const taskOf = database.prepare("SELECT request ->> '$.task.id' AS task FROM rollouts WHERE id = ?")
  const insertRollout = database.prepare("INSERT INTO rollouts(key, split, status, attempt, request) VALUES (?, ?, 'running', 0, ?)")
  const raiseAttempt = database.prepare('UPDATE rollouts SET attempt = attempt + 1, request = ? WHERE id = ?')
  const finishRollout = database.prepare("UPDATE rollouts SET status = 'done' WHERE id = ?")
  const findTurn = database.prepare(
    'SELECT crc32, completion_length FROM turns WHERE rollout = ? AND attempt = ? AND agent = ? AND turn = ?',
  )
  const insertTurn = database.prepare(
    'INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(rollout, attempt, agent, turn) DO NOTHING',
  )
  const insertEpisode = database.prepare('INSERT INTO episodes(rollout, body) VALUES (?, ?)')
  const findStep = database.prepare('SELECT 1 FROM steps WHERE step = ?')
  const insertStep = database.prepare('INSERT INTO steps VALUES (?, ?, ?, ?, ?)')
  const trainedIn = database.prepare('SELECT step FROM trained WHERE rollout = ?')
  const insertTrained = database.prepare('INSERT INTO trained VALUES (?, ?, ?)')
  const upsertState = database.prepare('INSERT INTO state(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value')

  function currentRollout(key: string, attempt: number): RolloutRow {
    const row = findRollout.get(key) as RolloutRow | undefined
    if (!row) throw conflict(`Rollout ${key} was never begun`)
    if (row.status === 'done') throw conflict(`Rollout ${key} has its result already`)
    if (row.attempt !== attempt) throw conflict(`Attempt ${attempt} of rollout ${key} was superseded by attempt ${row.attempt}`)
    return row
  }

  /** True where the very same turn is stored already; throws where another turn has its place. */
  function isPresent(rollout: RolloutRow, { agent, index, record }: EncodedTurn): boolean {
    const stored = findTurn.get(rollout.id, rollout.attempt, agent, index)
    if (!stored) return false
    if (stored['crc32'] === record.crc32 && stored['completion_length'] === record.completionLength) return true
    throw conflict(`Turn ${index} of ${agent} was recorded with other tokens`)
  }

  /** Adds a turn; false where this turn or another one has its place already. */
  function insert(rollout: RolloutRow, { agent, index, record }: EncodedTurn, at: SegmentPosition): boolean {
    const { body, prefixLength, suffixLength, completionLength, crc32 } = record
    const { id, attempt } = rollout
    const { segment, offset } = at
    const done = insertTurn.run(id, attempt, agent, index, body, prefixLength, suffixLength, completionLength, segment, offset, crc32)
    return done.changes === 1
  }

  /** Adds a turn behind its parent, once. */
  function addTurn(key: string, attempt: number, turn: EncodedTurn, at: SegmentPosition): void {
    const row = currentRollout(key, attempt)
    const { agent, index, parent } = turn
    if (parent !== null && !findTurn.get(row.id, attempt, agent, parent))
      throw conflict(`Turn ${index} of ${agent} continues turn ${parent}, which was not recorded`)
    if (!insert(row, turn, at)) isPresent(row, turn)
  }

  return {
    begin(request) {
      const body = JSON.stringify(request)
      return queue.commit({
        synced: false,
        apply() {
          const row = findRollout.get(request.key) as RolloutRow | undefined
          if (!row) {
            insertRollout.run(request.key, request.split, body)
            return { attempt: 0, episode: null }
          }
          const task = taskOf.get(row.id)?.['task'] as string
          if (task !== request.task.id) throw conflict(`Rollout ${request.key} is of task "${task}", not of "${request.task.id}"`)
          if (row.status === 'done') return { attempt: row.attempt, episode: queries.episode(request.key) }
          raiseAttempt.run(body, row.id)
          return { attempt: row.attempt + 1, episode: null }
        },
      })
    },

    appendTurn: (rollout, attempt, turn) =>
      queue.commit({
        chunks: [turn.record.bytes],
        synced: false,
        apply: (at) => addTurn(rollout, attempt, turn, at),
      }),

    finish: ({ rollout, attempt, body }, missing) =>
      queue.commit({
        chunks: missing.map(({ record }) => record.bytes),
        synced: true,
        apply(at) {
          const row = currentRollout(rollout, attempt)
          // A turn may continue one that is added with it, so only its tokens are checked here.
          for (const turn of missing) isPresent(row, turn)
          let { offset } = at
          for (const turn of missing) {
            insert(row, turn, { segment: at.segment, offset })
            offset += turn.record.bytes.byteLength
          }
          insertEpisode.run(row.id, body)
          finishRollout.run(row.id)
        },
      }),

    async commitStep(step) {
      await queue.commit({
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
          insertStep.run(step.step, step.weightVersion, step.checkpoint, JSON.stringify(step.metrics), Date.now())
          for (const [position, id] of ids.entries()) insertTrained.run(id, step.step, position)
        },
      })
    },

    async setState(key, value) {
      const text = JSON.stringify(value) ?? 'null'
      await queue.commit({ synced: true, apply: () => void upsertState.run(key, text) })
    },
  }

  function trainable(key: string): number {
    const row = findRollout.get(key) as RolloutRow | undefined
    if (row?.status !== 'done') throw conflict(`Rollout ${key} has no result and cannot be marked as trained`)
    const earlier = trainedIn.get(row.id)
    if (earlier) throw conflict(`Rollout ${key} was trained in step ${earlier['step']} already`)
    return row.id
  }
}

function sameStep(a: StepRecord | undefined, b: StepRecord): boolean {
  return a?.weightVersion === b.weightVersion && a.checkpoint === b.checkpoint && a.rollouts.join('\n') === b.rollouts.join('\n')
}
