// @module-tag quick
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { environmentFolder, readConnection } from '@aworld-train/environment'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { callTool, connectClient } from '../../packages/tool-servers/src/testing/open-test-server.ts'
import { repository, runCli } from '../support/run-cli.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'env-new-server-'))
  // As in a clone, whose own folder stays as it is.
  for (const name of ['node_modules', 'scripts']) symlinkSync(join(repository, name), join(folder, name), 'junction')
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
  // As the guide says it for a clone, and with none of the options that started this test.
  const guide = readFileSync(join(repository, 'docs', '3.guides', 'tool-environment.md'), 'utf8')
  const [, command] = /in a clone of this repository, [^`]*`node ([^`]*)`/.exec(guide)!
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env
  const tested = await promisify(execFile)(process.execPath, command!.split(' '), { cwd: folder, env })
  expect(tested.stdout).toContain('pass 1')

  const started = await runCli(['env', 'start', '--port', '0', '--tier', 'simulated'], { cwd: folder })
  expect(started).toMatchObject({ code: 0, stdout: expect.stringContaining(',weather-server"') })
  const { url, token } = readConnection(join(folder, environmentFolder))!
  const client = await connectClient(url, { token, headers: { MCP_SERVERS: 'weather-server,terminal-server' } })
  await callTool(client, 'terminal-server__execute_command', { command: 'echo sunny and warm > day.txt' })
  expect(await callTool(client, 'weather-server__count_words', { file_path: 'day.txt' })).toBe('3 words, 1 lines')
  expect(await callTool(client, 'weather-server__count_words', { file_path: 'night.txt' })).toMatch(/^error: .*night\.txt/)
  await client.close()
})
