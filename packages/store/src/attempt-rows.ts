import type { DatabaseSync } from 'node:sqlite'
import type { AttemptRow, EndedAttempt } from '@aworld-train/core'
import type { ErrorRecord } from '@aworld-train/protocol'

export interface AttemptWrites {
  /** Keeps the current attempt of a rollout before the next one takes its place. */
  keepEnded(rollout: number, ended: EndedAttempt | null): void
  /** Keeps which worker ran the attempt that has the result. */
  keepWorker(rollout: number, worker: string): void
}

export function createAttemptWrites(database: DatabaseSync): AttemptWrites {
  const insert = database.prepare(
    'INSERT INTO attempts SELECT id, attempt, ?2, started_at, coalesce(?3, ended_at), ?4 FROM rollouts WHERE id = ?1 ON CONFLICT DO NOTHING',
  )
  return {
    keepEnded(rollout, ended) {
      insert.run(rollout, ended?.worker ?? null, ended?.endedAt ?? null, ended && JSON.stringify(ended.error))
    },
    keepWorker: (rollout, worker) => void insert.run(rollout, worker, null, null),
  }
}

interface StoredAttempt extends Pick<AttemptRow, 'attempt' | 'worker'> {
  readonly started_at: number
  readonly ended_at: number | null
  readonly error: string | null
}

/** Prepares the read of the attempts of a rollout, in their order; a run from before these were kept has its last ones alone. */
export function createAttemptReads(database: DatabaseSync): (key: string) => AttemptRow[] {
  const hasTable = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'attempts'")
  const last = `SELECT id, attempt, NULL AS worker, started_at, CASE WHEN status <> 'running' THEN ended_at END AS ended_at, NULL AS error
    FROM rollouts WHERE key = ?1 AND started_at IS NOT NULL`
  const recorded = database.prepare(
    'SELECT count(*) AS turns, coalesce(sum(completion_length), 0) AS sampledTokens FROM turns WHERE rollout = (SELECT id FROM rollouts WHERE key = ?) AND attempt = ?',
  )
  return (key) => {
    const all = hasTable.get()
      ? `SELECT a.* FROM attempts a JOIN rollouts r ON r.id = a.rollout WHERE r.key = ?1
        UNION ALL SELECT * FROM (${last}) l WHERE NOT EXISTS (SELECT 1 FROM attempts a WHERE a.rollout = l.id AND a.attempt = l.attempt) ORDER BY attempt`
      : last
    const rows = database.prepare(all).all(key) as unknown as StoredAttempt[]
    return rows.map(({ attempt, worker, started_at: startedAt, ended_at: endedAt, error }) => ({
      ...{ attempt, worker, startedAt, endedAt, error: error === null ? null : (JSON.parse(error) as ErrorRecord) },
      ...(recorded.get(key, attempt) as unknown as Pick<AttemptRow, 'turns' | 'sampledTokens'>),
    }))
  }
}
