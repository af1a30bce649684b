import type { DatabaseSync } from 'node:sqlite'
import {
  type ErrorRecord,
  preciseNow,
  type RolloutPage,
  type RolloutQuery,
  type RolloutRow,
  type RolloutWaits,
  type RunRolloutStatus,
  type StopReason,
  type Timing,
} from '@aworld-train/core'
import { lengthOf } from './rollout-columns.ts'

export interface RolloutRowReads {
  /** Rows in the order in which they were queued; with `finishedAfter` in the order of finishing. */
  rolloutRows(query?: RolloutQuery): RolloutPage
  /** `null` for an unknown rollout. */
  rolloutRow(key: string): RolloutRow | null
}

/** The filter of a query, without its page. */
export type RolloutFilter = Omit<RolloutQuery, 'after' | 'limit'>

const conditions: Readonly<Record<keyof RolloutFilter, string>> = {
  key: 'key = ?',
  split: 'split = ?',
  step: 'step = ?',
  group: 'group_id = ?',
  taskId: 'task_id = ?',
  kind: 'kind = ?',
  status: 'status = ?',
  stopReason: 'stop_reason = ?',
  minReward: 'reward >= ?',
  maxReward: 'reward <= ?',
  finishedAfter: 'finished > ?',
}

interface StoredRow {
  readonly id: number
  readonly key: string
  readonly group_id: string
  readonly task_id: string
  readonly kind: string
  readonly split: string
  readonly step: number | null
  readonly sample: number
  readonly status: RolloutRow['status']
  readonly attempt: number
  readonly finished: number | null
  readonly queued_at: number
  readonly started_at: number | null
  readonly ended_at: number | null
  readonly queue_ms: number | null
  readonly engine_ms: number | null
  readonly tools_ms: number | null
  readonly reward: number | null
  readonly stop_reason: StopReason | null
  readonly turns: number | null
  readonly tool_calls: number | null
  readonly sampled_tokens: number | null
  readonly cost: number | null
  readonly error: string | null
  readonly answer: string | null
}

/** The status of a rollout as shown. If no process works on the run, no rollout waits or runs. */
export function shownStatus(status: RunRolloutStatus, isOwned: boolean): RunRolloutStatus {
  return !isOwned && (status === 'queued' || status === 'running') ? 'interrupted' : status
}

type Progress = Pick<RolloutRow, 'turns' | 'sampledTokens' | 'cost'> & { readonly engineMs: number; readonly endedAt: number | null }

const nothing: Progress = { turns: 0, sampledTokens: 0, cost: 0, engineMs: 0, endedAt: null }

export function createRolloutRowReads(database: DatabaseSync, isOwned: () => boolean): RolloutRowReads {
  const byKey = database.prepare('SELECT * FROM rollouts WHERE key = ?')
  const turnsSoFar = database.prepare(
    "SELECT completion_length AS tokens, body -> '$.timing' AS timing, body ->> '$.cost' AS cost FROM turns WHERE rollout = ? AND attempt = ?",
  )

  /** Sums of what the current attempt of a running rollout has recorded. */
  function progressOf(id: number, attempt: number): Progress {
    const turns = turnsSoFar.all(id, attempt) as unknown as { tokens: number; timing: string; cost: number | null }[]
    const timings = turns.map(({ timing }) => JSON.parse(timing) as Timing)
    return {
      turns: turns.length,
      sampledTokens: turns.reduce((sum, { tokens }) => sum + tokens, 0),
      cost: turns.reduce((sum, { cost }) => sum + (cost ?? 0), 0),
      engineMs: lengthOf(timings),
      endedAt: timings.reduce<number | null>((last, { endedAt }) => Math.max(last ?? endedAt, endedAt), null),
    }
  }

  function toRow(stored: StoredRow, owned: boolean): RolloutRow {
    const status = shownStatus(stored.status, owned)
    const isOpen = status === 'queued' || status === 'running'
    const done = {
      turns: stored.turns ?? 0,
      sampledTokens: stored.sampled_tokens ?? 0,
      cost: stored.cost ?? 0,
      engineMs: stored.engine_ms ?? 0,
      endedAt: null,
    }
    const { engineMs, endedAt, ...progress } =
      status === 'done' ? done : stored.started_at === null || status === 'queued' ? nothing : progressOf(stored.id, stored.attempt)
    // If its process vanished, the last known time is that of a turn.
    const end = stored.ended_at ?? (isOpen ? null : (endedAt ?? stored.started_at ?? stored.queued_at))
    return {
      key: stored.key,
      group: stored.group_id,
      taskId: stored.task_id,
      kind: stored.kind,
      split: stored.split,
      step: stored.step,
      sample: stored.sample,
      status,
      attempt: stored.attempt,
      finished: stored.finished,
      queuedAt: stored.queued_at,
      startedAt: status === 'queued' ? null : stored.started_at,
      endedAt: end,
      reward: stored.reward,
      stopReason: stored.stop_reason,
      error: stored.error === null ? null : (JSON.parse(stored.error) as ErrorRecord),
      ...progress,
      toolCalls: stored.tool_calls ?? 0,
      answer: stored.answer,
      waitMs: waitsOf(stored, end, engineMs),
    }
  }

  return {
    rolloutRow(key) {
      const stored = byKey.get(key)
      return stored ? toRow(stored as unknown as StoredRow, isOwned()) : null
    },
    rolloutRows({ after, limit = 500, ...filter } = {}) {
      const order = filter.finishedAfter === undefined ? 'id' : 'finished'
      const owned = isOwned()
      const { where, values } = whereOf(filter, owned)
      const page = `SELECT * FROM rollouts WHERE ${where} AND ${order} > ? ORDER BY ${order} LIMIT ?`
      const found = database.prepare(page).all(...values, after === undefined ? 0 : Number(after), limit + 1)
      const stored = found.slice(0, limit) as unknown as StoredRow[]
      return { rows: stored.map((row) => toRow(row, owned)), next: found.length > limit ? String(stored.at(-1)?.[order]) : null }
    },
  }
}

/** Builds a condition of SQL over `rollouts`, with its values. */
export function whereOf(filter: RolloutFilter, isOwned = true): { readonly where: string; readonly values: readonly (string | number)[] } {
  const { status } = filter
  if (!isOwned && (status === 'queued' || status === 'running')) return { where: 'FALSE', values: [] }
  if (!isOwned && status === 'interrupted') {
    const { where, values } = whereOf({ ...filter, status: undefined })
    return { where: `${where} AND status <> 'done' AND status IN ('queued', 'running', 'interrupted')`, values }
  }
  // Lets the index of rollouts without a result serve a filter on one of their statuses.
  const open = status === undefined || status === 'done' ? [] : ["status <> 'done'"]
  const entries = Object.entries(filter).filter((entry): entry is [keyof typeof conditions, string | number] => entry[1] !== undefined)
  return { where: ['TRUE', ...open, ...entries.map(([name]) => conditions[name])].join(' AND '), values: entries.map(([, value]) => value) }
}

function waitsOf(stored: StoredRow, end: number | null, engine: number): RolloutWaits {
  const { status, queued_at: queuedAt, started_at: startedAt, queue_ms: queue, tools_ms: tools } = stored
  const wallMs = Math.max(0, (end ?? preciseNow()) - queuedAt)
  if (status === 'queued' || startedAt === null) return { queue: wallMs, engine: 0, tools: 0, agent: 0 }
  const waits = { queue: queue ?? 0, engine, tools: tools ?? 0 }
  return { ...waits, agent: Math.max(0, wallMs - waits.queue - waits.engine - waits.tools) }
}
