import type { WorkerLaunch } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { createLocalLauncher } from './local-launcher.ts'

/** Workers that are a program of Node. */
function launch(program: string, changes: Partial<WorkerLaunch> = {}) {
  const warnings: string[] = []
  const launcher = createLocalLauncher({
    ...{ address: null, workerNum: 1, slots: 1, resources: {}, env: {}, options: {}, directory: '.' },
    worker: () => ({
      ...{ url: 'http://127.0.0.1:1', token: null, agent: '/agent.ts#agent' },
      command: [process.execPath, '-e', program],
      env: { NODE_OPTIONS: '' },
    }),
    onWarning: (message) => warnings.push(message),
    onExit() {},
    onFailed: () => expect.unreachable(),
    ...changes,
  })
  return { launcher, warnings }
}

it('starts a worker again, and ends it, where a process that it started keeps its standard error open', async () => {
  const { launcher, warnings } = launch(`
    const { spawn } = require('node:child_process')
    spawn(process.execPath, ['-e', 'setTimeout(() => {}, 30_000)'], { stdio: ['ignore', 'ignore', 'inherit'], detached: true }).unref()
    setTimeout(() => process.exit(1), 50)`)
  await launcher.start()
  await expect.poll(() => warnings, { timeout: 20_000 }).not.toEqual([])
  expect(warnings[0]).toMatch(/"local-0" ended with code 1 and is started again/)
  await launcher.stop()
  expect(await launcher.status()).toEqual([])
})

it('refuses what only a cluster reads', async () => {
  await expect(launch('', { address: 'http://head:8265', resources: { num_cpus: 1 } }).launcher.plan()).rejects.toThrow(
    /executor.address, executor.resources: engine "local"/,
  )
})
