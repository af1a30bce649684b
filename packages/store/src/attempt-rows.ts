import type { DatabaseSync } from 'node:sqlite'
import type { AttemptRow, AttemptWorker, EndedAttempt, ErrorRecord } from '@aworld-train/core'

export interface AttemptWrites {
  /** Keeps the current attempt of a rollout before the next one takes its place. */
  keepEnded(rollout: number, ended: EndedAttempt | null): void
  /** Keeps the worker that ran the attempt with the result. */
  keepWorker(rollout: number, worker: AttemptWorker): void
}

export function createAttemptWrites(database: DatabaseSync): AttemptWrites {
  const insert = database.prepare(
    'INSERT INTO attempts SELECT id, attempt, ?2, started_at, coalesce(?3, ended_at), ?4, ?5 FROM rollouts WHERE id = ?1 ON CONFLICT DO NOTHING',
  )
  return {
    keepEnded(rollout, ended) {
      const { worker, endedAt, error } = ended ?? { worker: null, endedAt: null, error: null }
      insert.run(rollout, worker?.name ?? null, endedAt, error && JSON.stringify(error), worker?.agent ?? null)
    },
    keepWorker: (rollout, { name, agent }) => void insert.run(rollout, name, null, null, agent),
  }
}

interface StoredAttempt extends Pick<AttemptRow, 'attempt' | 'worker' | 'agent'> {
  readonly started_at: number
  readonly ended_at: number | null
  readonly error: string | null
}

/** Prepares the read of a rollout's attempts, in their order. */
export function createAttemptReads(database: DatabaseSync): (key: string) => AttemptRow[] {
  const all =
    database.prepare(`SELECT a.attempt, a.worker, a.started_at, a.ended_at, a.error, a.agent FROM attempts a JOIN rollouts r ON r.id = a.rollout WHERE r.key = ?1
    UNION ALL SELECT attempt, NULL, started_at, CASE WHEN status <> 'running' THEN ended_at END, NULL, NULL FROM rollouts r
      WHERE key = ?1 AND started_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.rollout = r.id AND a.attempt = r.attempt)
    ORDER BY attempt`)
  const recorded = database.prepare(
    'SELECT count(*) AS turns, coalesce(sum(completion_length), 0) AS sampledTokens FROM turns WHERE rollout = (SELECT id FROM rollouts WHERE key = ?) AND attempt = ?',
  )
  return (key) => {
    const rows = all.all(key) as unknown as StoredAttempt[]
    return rows.map(({ attempt, worker, agent, started_at: startedAt, ended_at: endedAt, error }) => ({
      attempt,
      worker,
      agent,
      startedAt,
      endedAt,
      error: error === null ? null : (JSON.parse(error) as ErrorRecord),
      ...(recorded.get(key, attempt) as unknown as Pick<AttemptRow, 'turns' | 'sampledTokens'>),
    }))
  }
}
