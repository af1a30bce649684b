// @module-tag quick
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { environmentFolder, readConnection } from '@aworld-train/environment'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { callTool, connectClient } from '../../packages/tools/src/testing/open-test-server.ts'
import { repository, runCli } from '../support/run-cli.ts'
import { runNode } from '../support/run-npm.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'env-new-server-'))
  // As in a project that has installed our packages.
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'), 'junction')
})
afterEach(async () => {
  await runCli(['env', 'stop'], { cwd: folder })
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

it('a new tool server passes its test, and env start mounts it beside the others', async () => {
  expect(await runCli(['env', 'new-server', 'weather'], { cwd: folder })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(join('tool-servers', 'weather', 'server.ts')),
  })
  const tested = await runNode(['--test', 'tool-servers/weather/server.test.ts'], folder)
  expect(tested).toMatchObject({ code: 0, output: expect.stringContaining('pass 1') })

  const started = await runCli(['env', 'start', '--port', '0', '--tier', 'simulated'], { cwd: folder })
  expect(started).toMatchObject({ code: 0, stdout: expect.stringContaining(',weather-server"') })
  const { url, token } = readConnection(join(folder, environmentFolder))!
  const client = await connectClient(url, { token, headers: { MCP_SERVERS: 'weather-server,terminal-server' } })
  await callTool(client, 'terminal-server__execute_command', { command: 'echo sunny and warm > day.txt' })
  expect(await callTool(client, 'weather-server__count_words', { file_path: 'day.txt' })).toBe('3 words, 1 lines')
  expect(await callTool(client, 'weather-server__count_words', { file_path: 'night.txt' })).toMatch(/^error: .*night\.txt/)
  await client.close()
})
