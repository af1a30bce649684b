// @module-tag quick
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSparkLauncher } from '@aworld-train/executor-spark'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeProject, trainWithKills } from '../trainers/support/train-with-kills.ts'
import { sparkEnvironment } from './spark-environment.ts'

let folder: string
let python: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spark-'))
  python = await sparkEnvironment()
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const launcher = (options: Record<string, string>, changes: { readonly address?: string } = {}) =>
  createSparkLauncher({
    ...{ address: null, workerNum: 4, slots: 16, resources: {}, env: {}, options, directory: folder, ...changes },
    worker: () => expect.unreachable(),
    onWarning() {},
    onExit() {},
    onFailed() {},
  })

it('the main example has the same rewards, losses and weights on Spark', async () => {
  expect(await launcher({ python }).plan()).toEqual([
    expect.stringMatching(/4 workers, each in a partition of Spark 4.3.0 on Java \d+.*local\[4\]/),
  ])
  const inProcess = await trainWithKills(await makeProject(join(folder, 'in-process'), {}, 4))
  const executor = { engineName: 'spark', workerNum: 4, slots: 16, resources: { 'spark.ui.enabled': 'false' }, options: { python } }
  const spark = await trainWithKills(await makeProject(join(folder, 'on-spark'), executor, 4))
  expect(spark.result).toEqual(inProcess.result)
  expect(spark.report.ledger).toMatchObject({ unexplained: 0 })
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
  expect(() => launcher({}, { address: 'http://head:7077' })).toThrow(/is "http:\/\/head:7077"; give a master of Spark/)
})
