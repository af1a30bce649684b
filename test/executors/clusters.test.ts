// @module-tag quick
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRayLauncher } from '@aworld-train/executors/ray'
import { createSparkLauncher } from '@aworld-train/executors/spark'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeProject, trainWithKills } from '../trainers/support/train-with-kills.ts'
import { type RayCluster, startRayCluster } from './ray-cluster.ts'
import { sparkEnvironment } from './spark-environment.ts'

const steps = 4
let folder: string
let inProcess: Awaited<ReturnType<typeof trainWithKills>>
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'clusters-'))
  inProcess = await trainWithKills(await makeProject(join(folder, 'in-process'), {}, steps))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function expectTheSame(executor: { readonly engineName: string; readonly [key: string]: unknown }): Promise<void> {
  const project = await makeProject(join(folder, executor.engineName), { workerNum: 4, slots: 16, ...executor }, steps)
  const { result, report } = await trainWithKills(project)
  expect(result).toEqual(inProcess.result)
  expect(report.ledger).toMatchObject({ unexplained: 0 })
}

const launch = {
  ...{ slots: 16, resources: {}, env: {} },
  worker: () => expect.unreachable(),
  onWarning() {},
  onExit: () => undefined,
  onFailed() {},
}

describe('Ray', () => {
  let cluster: RayCluster
  beforeAll(async () => {
    cluster = await startRayCluster(folder, 2)
  })
  afterAll(() => cluster?.close())

  it('the main example has the same rewards, losses and weights on Ray', async () => {
    const { address, python } = cluster
    await expectTheSame({ engineName: 'ray', address, resources: { num_cpus: 1 }, options: { python } })
  })

  it('a cluster that does not let us in, or is not there, is named', async () => {
    const launcher = (address: string) => createRayLauncher({ ...launch, address, workerNum: 1, options: {}, directory: folder })
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
})

describe('Spark', () => {
  let python: string
  beforeAll(async () => {
    python = await sparkEnvironment()
  })
  const launcher = (options: Record<string, string>, address: string | null = null) =>
    createSparkLauncher({ ...launch, address, workerNum: 4, options, directory: folder })

  it('the main example has the same rewards, losses and weights on Spark', async () => {
    expect(await launcher({ python }).plan()).toEqual([
      expect.stringMatching(/4 workers, each in a partition of Spark 4.3.0 on Java \d+.*local\[4\]/),
    ])
    await expectTheSame({ engineName: 'spark', resources: { 'spark.ui.enabled': 'false' }, options: { python } })
  })

  it('no Java, no PySpark and what is no master are named', async () => {
    const home = process.env['JAVA_HOME']
    process.env['JAVA_HOME'] = folder
    try {
      await expect(launcher({ python }).plan()).rejects.toThrow(/There is no Java at .*install Java 17/)
    } finally {
      if (home === undefined) delete process.env['JAVA_HOME']
      else process.env['JAVA_HOME'] = home
    }
    await expect(launcher({ python: process.execPath }).plan()).rejects.toThrow(/has no PySpark.*executor.options.python/)
    expect(() => launcher({}, 'http://head:7077')).toThrow(/is "http:\/\/head:7077"; give a master of Spark/)
  })
})
