// @module-tag quick
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeProject, trainWithKills } from '../support/train-with-kills.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-workers-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

it('ten kills of workers change no reward, no loss and no weight of a training', async () => {
  const inProcess = await trainWithKills(await makeProject(join(folder, 'in-process'), {}, 14))
  const killed = await trainWithKills(await makeProject(join(folder, 'workers'), { workerNum: 4, slots: 16 }, 14), {
    kills: 10,
    stepsBetween: 1,
  })
  expect(killed.killed).toBe(10)
  expect(killed.attempts).toBeGreaterThan(0)
  expect(killed.result).toEqual(inProcess.result)
  expect(killed.report.ledger).toMatchObject({ unexplained: 0 })
}, 600_000)
