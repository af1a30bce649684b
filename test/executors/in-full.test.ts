// The whole of the main example on each engine, which takes some minutes.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeProject, trainWithKills } from '../trainers/support/train-with-kills.ts'
import { startRayCluster } from './ray-cluster.ts'
import { sparkEnvironment } from './spark-environment.ts'

const steps = 45
const common = { workerNum: 4, slots: 16 }
let folder: string
let inProcess: Awaited<ReturnType<typeof trainWithKills>>
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'executors-'))
  inProcess = await trainWithKills(await makeProject(join(folder, 'in-process'), {}, steps))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function expectTheSame(name: string, executor: object): Promise<void> {
  const { result, report } = await trainWithKills(await makeProject(join(folder, name), { ...common, ...executor }, steps))
  expect(result).toEqual(inProcess.result)
  expect(report.ledger).toMatchObject({ unexplained: 0 })
}

it(`${steps} steps of the main example have the same rewards, losses and weights on Ray`, async () => {
  const { address, python, close } = await startRayCluster(folder, 2)
  try {
    await expectTheSame('on-ray', { engineName: 'ray', address, options: { python } })
  } finally {
    await close()
  }
})

it(`${steps} steps of the main example have the same rewards, losses and weights on Spark`, async () => {
  const resources = { 'spark.ui.enabled': 'false' }
  await expectTheSame('on-spark', { engineName: 'spark', resources, options: { python: await sparkEnvironment() } })
})
