import type { HealthSample } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { readRun } from './run-reader.ts'
import { temporaryFolder } from './testing/run-fixtures.ts'

const sample = (at: number): HealthSample => ({
  at,
  queued: 3,
  running: 2,
  retries: 1,
  calls: 2,
  eventLoopMs: { p99: 1.5, most: 40 },
  memoryBytes: 1e8,
  engines: { policy: { ready: true, reason: null, replicas: [], weightVersion: 4 } },
  channel: null,
})

test.each([false, true])(
  'samples are read while the run is alive and after it, half an hour of them (written in a thread: %s)',
  async (thread) => {
    await using folder = await temporaryFolder()
    const store = await openRunStore({ path: folder.path, thread })
    const start = 1_800_000_000_000
    for (let index = 0; index < 1_000; index++) void store.keepHealth(sample(start + index * 2_000))
    await store.setState('healthy', 'another value')
    const reader = readRun(folder.path)
    expect(reader.health(start + 997 * 2_000)).toEqual({ samples: [sample(start + 998 * 2_000), sample(start + 999 * 2_000)], workers: [] })
    reader.close()
    await store.close()
    const run = readRun(folder.path)
    expect(run.health(0).samples.map(({ at }) => at)).toEqual(Array.from({ length: 900 }, (_, index) => start + (100 + index) * 2_000))
    run.close()
  },
)
