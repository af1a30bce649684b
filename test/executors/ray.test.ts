// @module-tag quick
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRayLauncher } from '@aworld-train/executor-ray'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeProject, trainWithKills } from '../trainers/support/train-with-kills.ts'
import { type RayCluster, startRayCluster } from './ray-cluster.ts'

let folder: string
let cluster: RayCluster
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ray-'))
  cluster = await startRayCluster(folder, 2)
})
afterAll(async () => {
  await cluster?.close()
  await rm(folder, { recursive: true, force: true })
})

it('the main example has the same rewards, losses and weights on Ray', async () => {
  const { address, python } = cluster
  const inProcess = await trainWithKills(await makeProject(join(folder, 'in-process'), {}, 4))
  const executor = { engineName: 'ray', address, workerNum: 4, slots: 16, resources: { num_cpus: 1 }, options: { python } }
  const ray = await trainWithKills(await makeProject(join(folder, 'on-ray'), executor, 4))
  expect(ray.result).toEqual(inProcess.result)
  expect(ray.report.ledger).toMatchObject({ unexplained: 0 })
})

it('a cluster that does not let us in, or is not there, is named', async () => {
  const launcher = (address: string) =>
    createRayLauncher({
      ...{ address, workerNum: 1, slots: 1, resources: {}, env: {}, options: {}, directory: folder },
      worker: () => expect.unreachable(),
      onWarning() {},
      onExit() {},
      onFailed() {},
    })
  expect(await launcher(cluster.address).plan()).toEqual([expect.stringMatching(/^1 worker as actors of Ray 2.60.0 at http/)])
  await expect(launcher('http://127.0.0.1:9').plan()).rejects.toThrow(/Ray does not answer at http:\/\/127.0.0.1:9.*executor.address/)
  const token = process.env['RAY_AUTH_TOKEN_PATH']
  process.env['RAY_AUTH_TOKEN_PATH'] = join(folder, 'none')
  try {
    await expect(launcher(cluster.address).plan()).rejects.toThrow(/does not let us in \(401\).*there is none; set RAY_AUTH_TOKEN/)
  } finally {
    process.env['RAY_AUTH_TOKEN_PATH'] = token
  }
})
