import type { DatabaseSync } from 'node:sqlite'
import type { RunStore, StepRecord, TurnBatchReply } from '@aworld-train/core'
import { TrainError, type Turn } from '@aworld-train/protocol'
import type { CommitQueue } from './commit-queue.ts'
import { type EncodedEpisode, encodeEpisode, missingTurns } from './encode-episode.ts'
import type { RunQueries } from './run-queries.ts'
import type { SegmentPosition } from './segment-writer.ts'
import { conflict } from './store-error.ts'
import { createTurnCache } from './turn-cache.ts'
import { type TurnRecord, toTurnRecord } from './turn-record.ts'

export type RunWrites = Pick<RunStore, 'begin' | 'appendTurn' | 'finish' | 'commitStep' | 'setState'>

/** A turn that another thread has encoded. */
export interface LoggedTurn {
  readonly rollout: string
  readonly attempt: number
  readonly turn: EncodedTurn
}

/** The writes as the thread of the run's writer has them. */
export interface OwnedWrites extends RunWrites {
  /** `turns` have their bytes one behind the other in `tokens`. */
  appendLogged(turns: readonly LoggedTurn[], tokens: Uint8Array): Promise<TurnBatchReply>
  /** Those turns of an episode that are not stored. */
  missing(episode: EncodedEpisode): readonly (readonly [agent: string, index: number])[]
  finishEncoded(episode: EncodedEpisode, missing: readonly (readonly [agent: string, turn: Turn])[]): Promise<void>
}

interface RolloutRow {
  readonly id: number
  readonly attempt: number
  readonly status: 'running' | 'done'
}

export interface EncodedTurn {
  readonly agent: string
  readonly index: number
  /** Index of the turn its tokens continue; that row must be there. */
  readonly parent: number | null
  /** The body in UTF-8 where it was encoded elsewhere. */
  readonly record: Omit<TurnRecord, 'body' | 'bytes'> & { readonly body: string | Uint8Array }
}

type RecordedTurn = EncodedTurn & { readonly record: TurnRecord }

/** The writes of a run. Each is one transaction's part: refused before its first change, or whole. */
export function createRunWrites(database: DatabaseSync, queue: CommitQueue, queries: RunQueries): OwnedWrites {
  const findRollout = database.prepare('SELECT id, attempt, status FROM rollouts WHERE key = ?')
  const taskOf = database.prepare("SELECT request ->> '$.task.id' AS task FROM rollouts WHERE id = ?")
  const insertRollout = database.prepare("INSERT INTO rollouts(key, split, status, attempt, request) VALUES (?, ?, 'running', 0, ?)")
  const raiseAttempt = database.prepare('UPDATE rollouts SET attempt = attempt + 1, request = ? WHERE id = ?')
  const finishRollout = database.prepare("UPDATE rollouts SET status = 'done' WHERE id = ?")
  const findTurn = database.prepare(
    'SELECT crc32, completion_length FROM turns WHERE rollout = ? AND attempt = ? AND agent = ? AND turn = ?',
  )
  const insertTurn = database.prepare(
    'INSERT INTO turns VALUES (?, ?, ?, ?, CAST(? AS TEXT), ?, ?, ?, ?, ?, ?) ON CONFLICT(rollout, attempt, agent, turn) DO NOTHING',
  )
  const insertEpisode = database.prepare('INSERT INTO episodes(rollout, body) VALUES (?, ?)')
  const findStep = database.prepare('SELECT 1 FROM steps WHERE step = ?')
  const insertStep = database.prepare('INSERT INTO steps VALUES (?, ?, ?, ?, ?)')
  const trainedIn = database.prepare('SELECT step FROM trained WHERE rollout = ?')
  const insertTrained = database.prepare('INSERT INTO trained VALUES (?, ?, ?)')
  const upsertState = database.prepare('INSERT INTO state(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value')
  const cache = createTurnCache()

  function currentRollout(key: string, attempt: number): RolloutRow {
    const row = findRollout.get(key) as RolloutRow | undefined
    if (!row) throw conflict(`Rollout ${key} was never begun`)
    if (row.status === 'done') throw conflict(`Rollout ${key} has its result already`)
    if (row.attempt !== attempt) throw conflict(`Attempt ${attempt} of rollout ${key} was superseded by attempt ${row.attempt}`)
    return row
  }

  /** True where the very same turn stands already; refuses another in its place. */
  function isPresent(rollout: RolloutRow, { agent, index, record }: EncodedTurn): boolean {
    const stored = findTurn.get(rollout.id, rollout.attempt, agent, index)
    if (!stored) return false
    if (stored['crc32'] === record.crc32 && stored['completion_length'] === record.completionLength) return true
    throw conflict(`Turn ${index} of ${agent} was recorded with other tokens`)
  }

  /** Adds a turn that is not there; false where it is, or another in its place. */
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
    const isKnown = parent === null || cache.isStored(key, attempt, agent, parent)
    if (!isKnown && !findTurn.get(row.id, attempt, agent, parent))
      throw conflict(`Turn ${index} of ${agent} continues turn ${parent}, which was not recorded`)
    if (!insert(row, turn, at)) isPresent(row, turn)
  }

  function encode(rollout: string, attempt: number, agent: string, turn: Turn): RecordedTurn {
    const parent = turn.parent === null ? null : cache.get(rollout, attempt, agent, turn.parent)
    const record = toTurnRecord(turn, parent)
    cache.add(rollout, attempt, agent, turn)
    return { agent, index: turn.index, parent: record.prefixLength > 0 ? turn.parent : null, record }
  }

  const missing = ({ rollout, attempt, turns }: EncodedEpisode) =>
    turns.filter(([agent, index]) => !cache.isStored(rollout, attempt, agent, index))

  async function finish({ rollout, attempt, body }: EncodedEpisode, turns: readonly (readonly [string, Turn])[]): Promise<void> {
    const added = turns.map(([agent, turn]) => encode(rollout, attempt, agent, turn))
    await queue.commit({
      chunks: added.map(({ record }) => record.bytes),
      synced: true,
      apply(at) {
        const row = currentRollout(rollout, attempt)
        // A turn may continue one that is added with it, so only its tokens are checked here.
        for (const turn of added) isPresent(row, turn)
        let { offset } = at
        for (const turn of added) {
          insert(row, turn, { segment: at.segment, offset })
          offset += turn.record.bytes.byteLength
        }
        insertEpisode.run(row.id, body)
        finishRollout.run(row.id)
      },
    })
    cache.drop(rollout)
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
          cache.drop(request.key)
          return { attempt: row.attempt + 1, episode: null }
        },
      })
    },

    async appendTurn(rollout, attempt, agent, turn) {
      const encoded = encode(rollout, attempt, agent, turn)
      await queue.commit({
        chunks: [encoded.record.bytes],
        synced: false,
        apply: (at) => addTurn(rollout, attempt, encoded, at),
      })
      cache.markStored(rollout, attempt, agent, turn.index)
    },

    async appendLogged(turns, tokens) {
      const failures = await queue.commit({
        chunks: [tokens],
        synced: false,
        apply({ segment, offset }) {
          const refused: { turn: number; code: TrainError['code']; message: string }[] = []
          let next = offset
          turns.forEach(({ rollout, attempt, turn }, index) => {
            const at = { segment, offset: next }
            next += (turn.record.suffixLength + 2 * turn.record.completionLength) * 4
            try {
              addTurn(rollout, attempt, turn, at)
            } catch (error) {
              if (!(error instanceof TrainError)) throw error
              refused.push({ turn: index, code: error.code, message: error.message })
            }
          })
          return refused
        },
      })
      const refused = new Set(failures.map(({ turn }) => turn))
      turns.forEach(({ rollout, attempt, turn }, index) => {
        if (!refused.has(index)) cache.markStored(rollout, attempt, turn.agent, turn.index)
      })
      return { failures }
    },

    missing,

    finish(episode) {
      const encoded = encodeEpisode(episode)
      return finish(encoded, missingTurns(episode, missing(encoded)))
    },

    finishEncoded: finish,

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
