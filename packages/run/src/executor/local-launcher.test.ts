import { expect, it } from 'vitest'
import { createLocalLauncher } from './local-launcher.ts'

it('starts a worker again, and ends it, where a process that it started keeps its standard error open', async () => {
  const program = `
    const { spawn } = require('node:child_process')
    spawn(process.execPath, ['-e', 'setTimeout(() => {}, 30_000)'], { stdio: ['ignore', 'ignore', 'inherit'], detached: true }).unref()
    setTimeout(() => process.exit(1), 50)`
  const warnings: string[] = []
  const launcher = createLocalLauncher({
    workerNum: 1,
    slots: 1,
    worker: () => ({ command: [process.execPath, '-e', program], env: { NODE_OPTIONS: '' } }),
    onWarning: (message) => warnings.push(message),
    onFailed: (error) => warnings.push(error.message),
  })
  await launcher.start()
  await expect.poll(() => warnings, { timeout: 20_000 }).not.toEqual([])
  expect(warnings[0]).toMatch(/"local-0" ended with code 1 and is started again/)
  await launcher.stop()
  expect(await launcher.status()).toEqual([])
})
