import type { WorkerLaunch } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { createLocalLauncher } from './local-launcher.ts'

/** Launches workers that run a program of Node. */
function launch(program: string, changes: Partial<WorkerLaunch> = {}) {
  const warnings: string[] = []
  const launcher = createLocalLauncher({
    address: null,
    workerNum: 1,
    slots: 1,
    resources: {},
    env: {},
    options: {},
    directory: '.',
    worker: () => ({
      url: 'http://127.0.0.1:1',
      token: null,
      agent: '/agent.ts#agent',
      command: [process.execPath, '-e', program],
      env: { NODE_OPTIONS: '' },
    }),
    onWarning: (message) => warnings.push(message),
    onExit: () => false,
    onFailed: () => expect.unreachable(),
    ...changes,
  })
  return { launcher, warnings }
}

it('starts a worker again, and ends it, where a process that it started keeps its output open', async () => {
  const { launcher, warnings } = launch(`
    const { spawn } = require('node:child_process')
    spawn(process.execPath, ['-e', 'setTimeout(() => {}, 30_000)'], { stdio: ['ignore', 'inherit', 'inherit'], detached: true }).unref()
    setTimeout(() => process.exit(1), 50)`)
  await launcher.start()
  await expect.poll(() => warnings, { timeout: 120_000 }).not.toEqual([])
  expect(warnings[0]).toMatch(/"local-0" ended with code 1 and is started again/)
  await launcher.stop()
  expect(await launcher.status()).toEqual([])
})

it('gives a worker up that ends at each of its starts, and never one that had connected', async () => {
  const failures: string[] = []
  const program = 'process.exit(1)'
  const failing = launch(program, { onFailed: ({ message }) => failures.push(message) })
  const ended = launch(program, { onExit: () => true })
  await Promise.all([failing.launcher.start(), ended.launcher.start()])
  await expect.poll(() => failures, { timeout: 120_000 }).toEqual([expect.stringMatching(/"local-0" cannot run: it ended with code 1/)])
  await expect.poll(() => ended.warnings.length, { timeout: 120_000 }).toBeGreaterThan(6)
  await ended.launcher.stop()
})

it('refuses what only a cluster reads', async () => {
  await expect(launch('', { address: 'http://head:8265', resources: { num_cpus: 1 } }).launcher.plan()).rejects.toThrow(
    /executor.address, executor.resources: engine "local"/,
  )
})
