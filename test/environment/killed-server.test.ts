// @module-tag quick
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LeaseAnswer } from '@aworld-train/core'
import { environmentFolder, readConnection } from '@aworld-train/environment'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { callTool, connectClient, leaseOpen } from '../../packages/tools/src/testing/open-test-server.ts'
import { runCli } from '../support/run-cli.ts'
import { sleepersOf, sleepTime } from './processes.ts'

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

async function start() {
  const started = await runCli(['env', 'start', '--port', '0', '--tier', 'bubblewrap'], { cwd: folder, env: { TMPDIR: temporary } })
  expect(started).toMatchObject({ code: 0, stdout: expect.stringContaining('Start mcp server success.') })
  return readConnection(join(folder, environmentFolder))!
}

async function lease(url: string, token: string): Promise<LeaseAnswer> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(new URL('/v1/leases', url), { method: 'POST', headers, body: JSON.stringify(leaseOpen) })
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
