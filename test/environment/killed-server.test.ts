// @module-tag quick
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRunning, LeaseAnswer } from '@aworld-train/core'
import { environmentFolder, readConnection } from '@aworld-train/environment'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { callTool, connectClient, leaseOpen } from '../../packages/tools/src/testing/open-test-server.ts'
import { runCli } from '../support/run-cli.ts'
import { commandsBelowUs, sleepersOf, sleepTime } from './processes.ts'

let folder: string
/** Where the server keeps what is temporary. */
let temporary: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'killed-server-'))
  temporary = join(folder, 'tmp')
  mkdirSync(temporary)
})
afterEach(async () => {
  await runCli(['env', 'stop'], { cwd: folder })
  rmSync(folder, { recursive: true, force: true })
})

async function start(...options: string[]) {
  const started = await runCli(['env', 'start', '--port', '0', '--tier', 'bubblewrap', ...options], {
    cwd: folder,
    env: { TMPDIR: temporary },
  })
  expect(started).toMatchObject({ code: 0, stdout: expect.stringContaining('Start mcp server success.') })
  return readConnection(join(folder, environmentFolder))!
}

async function lease(url: string, token: string, rollout: string = leaseOpen.rollout): Promise<LeaseAnswer> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(new URL('/v1/leases', url), { method: 'POST', headers, body: JSON.stringify({ ...leaseOpen, rollout }) })
  return LeaseAnswer.parse(await response.json())
}

test('of a killed server no process is left, no folder after the next start, and its leases open nothing', async () => {
  const time = sleepTime(7)
  const first = await start()
  const { token } = await lease(first.url, first.token)
  const client = await connectClient(first.url, { token })
  const command = `echo kept > file; (setsid sleep ${time} &); sleep ${time} &`
  await callTool(client, 'terminal-server__execute_command', { command })
  const running = callTool(client, 'terminal-server__execute_command', { command: `sleep ${time}` }).catch(() => 'lost')
  await vi.waitUntil(() => sleepersOf(time).length === 3, { timeout: 60_000 })
  expect(readdirSync(temporary)).not.toEqual([])

  process.kill(first.pid, 'SIGKILL')
  expect(await running).toBe('lost')
  await vi.waitUntil(() => sleepersOf(time).length === 0, { timeout: 60_000 })
  const second = await start()
  const left = () => readdirSync(temporary).filter((name) => name.includes(`-${first.pid}-`))
  expect(left()).toEqual([])
  expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(temporary)
  await expect(connectClient(second.url, { token })).rejects.toThrow()
  await client.close()
})

test('nor one of the browsers of its leases, and of those that waited for others', { timeout: 240_000 }, async () => {
  const { url, token, pid } = await start('--ready-browsers', '1')
  const browsers = () => commandsBelowUs(/^(?:node \S*cli\.js|\/usr\/lib\/chromium\/(?!.*--type=))/, pid)
  for (const rollout of ['first', 'second']) {
    const client = await connectClient(url, { token: (await lease(url, token, rollout)).token })
    await callTool(client, 'browser-server__browser_navigate', { url: 'data:text/html,<title>Page</title>' })
    await client.close()
  }
  await vi.waitUntil(() => browsers().length === 6, { timeout: 120_000, interval: 100 })
  const running = commandsBelowUs(/./, pid)
  process.kill(pid, 'SIGKILL')
  await vi.waitUntil(() => !running.some(isRunning), { timeout: 60_000 })
})
