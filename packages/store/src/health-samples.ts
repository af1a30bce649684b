import type { DatabaseSync } from 'node:sqlite'
import type { HealthSample, RunHealth, WorkerHealth } from '@aworld-train/core'

/** Milliseconds between samples, and milliseconds for which they are kept: half an hour. */
export const healthEveryMs = 2_000
export const healthKeptMs = 1_800_000
const mostSamples = healthKeptMs / healthEveryMs

/** Key of a sample in `state`. It replaces the sample taken half an hour before it. */
export const healthKey = ({ at }: HealthSample): string => `health/${Math.floor(at / healthEveryMs) % mostSamples}`

/** Key in `state` of the workers at the last sample. */
export const workersKey = 'workers'

/** Prepares the read of the samples after a Unix millisecond, oldest first, and of the workers. */
export function createHealthReads(database: DatabaseSync): (after: number) => RunHealth {
  const samples = database.prepare(
    "SELECT value FROM state WHERE key >= 'health/' AND key < 'health0' AND json_extract(value, '$.at') > ? ORDER BY json_extract(value, '$.at')",
  )
  const workers = database.prepare('SELECT value FROM state WHERE key = ?')
  return (after) => ({
    samples: samples.all(after).map(({ value }) => JSON.parse(value as string) as HealthSample),
    workers: JSON.parse((workers.get(workersKey)?.['value'] as string | undefined) ?? '[]') as WorkerHealth[],
  })
}
