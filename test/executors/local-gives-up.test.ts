// Twelve starts, and the growing time between them, take some fifteen seconds: in the full form only.
import { localEngine } from '@aworld-train/training'
import { expect, it } from 'vitest'

it('gives up a worker that a signal ends at each of its starts', async () => {
  const failures: string[] = []
  const exits: string[] = []
  const launcher = localEngine.create({
    ...{ address: null, workerNum: 1, slots: 1, resources: {}, env: {}, options: {}, directory: '.' },
    worker: () => ({
      ...{ url: 'http://127.0.0.1:1', token: null, agent: '/agent.ts#agent' },
      command: [process.execPath, '-e', "process.kill(process.pid, 'SIGSEGV')"],
      env: { NODE_OPTIONS: '' },
    }),
    onWarning() {},
    onExit(name) {
      exits.push(name)
      return false
    },
    onFailed: (error) => failures.push(error.message),
  })
  await launcher.start()
  await expect.poll(() => failures, { timeout: 120_000 }).toEqual([expect.stringMatching(/"local-0" cannot run: it ended by SIGSEGV/)])
  expect(await launcher.status()).toEqual([expect.objectContaining({ state: 'ended', restarts: 11 })])
  expect(exits).toEqual(Array(12).fill('local-0'))
  await launcher.stop()
})
