// @module-tag quick
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { localEngine } from '@aworld-train/run'
import { describeExecutor } from '@aworld-train/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { executorSubject } from '../support/executor-exam/executor-subject.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-executor-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describeExecutor(
  'local',
  executorSubject(
    () => folder,
    () => ({ engineName: 'local' }),
    { not: { launcher: 'the launcher is the coordinator itself' } },
  ),
)

it('gives up a worker that a signal ends at each of its starts', async () => {
  const failures: string[] = []
  const exits: string[] = []
  const launcher = localEngine.create({
    ...{ address: null, workerNum: 1, slots: 1, resources: {}, env: {}, options: {}, directory: folder },
    worker: () => ({
      ...{ url: 'http://127.0.0.1:1', token: null, agent: '/agent.ts#agent' },
      command: [process.execPath, '-e', "process.kill(process.pid, 'SIGSEGV')"],
      env: { NODE_OPTIONS: '' },
    }),
    onWarning() {},
    onExit: (name) => exits.push(name),
    onFailed: (error) => failures.push(error.message),
  })
  await launcher.start()
  await expect.poll(() => failures, { timeout: 120_000 }).toEqual([expect.stringMatching(/"local-0" cannot run: it ended by SIGSEGV/)])
  expect(await launcher.status()).toEqual([expect.objectContaining({ state: 'ended', restarts: 11 })])
  expect(exits).toEqual(Array(12).fill('local-0'))
  await launcher.stop()
})
