import type { DatabaseSync } from 'node:sqlite'
import type { HealthSample } from '@aworld-train/core'

/** Milliseconds between samples, and for how long they are kept: half an hour. */
export const healthEveryMs = 2_000
export const healthKeptMs = 1_800_000
const mostSamples = healthKeptMs / healthEveryMs

/** Where in `state` a sample is kept: in the place of the one that was taken half an hour before it. */
export const healthKey = ({ at }: HealthSample): string => `health/${Math.floor(at / healthEveryMs) % mostSamples}`

/** Prepares the read of the samples after a Unix millisecond, oldest first. */
export function createHealthReads(database: DatabaseSync): (after: number) => HealthSample[] {
  const samples = database.prepare(
    "SELECT value FROM state WHERE key >= 'health/' AND key < 'health0' AND json_extract(value, '$.at') > ? ORDER BY json_extract(value, '$.at')",
  )
  return (after) => samples.all(after).map(({ value }) => JSON.parse(value as string) as HealthSample)
}
