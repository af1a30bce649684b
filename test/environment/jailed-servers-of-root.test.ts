// @module-tag quick
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createEnvironment } from 'aworld-train'
import { expect, test } from 'vitest'

const script = fileURLToPath(new URL('shell-server.ts', import.meta.url))
const isRoot = process.getuid?.() === 0

test.runIf(isRoot)('a path that the users of jails cannot read is named', async () => {
  await using stack = new AsyncDisposableStack()
  // Its owner alone enters it.
  const closed = stack.adopt(mkdtempSync(join(tmpdir(), 'jailed-servers-')), (each) => rmSync(each, { recursive: true }))
  const environment = stack.adopt(createEnvironment({ warmProcesses: 0 }), (each) => each.close())
  const lease = environment.lease({ rollout: 'rollout', attempt: 0, sample: 0, task: { id: 'task' } })
  const shell = { command: 'node', args: [script], sandbox: { read: [closed] } }
  await expect(lease.tools({ agent: 'agent', mcpConfig: { mcpServers: { shell } } }, new AbortController().signal)).rejects.toMatchObject({
    code: 'ENVIRONMENT_START_FAILED',
    message: expect.stringMatching(/jailed-servers-\w+ cannot be read by every user.*chmod o\+rx/),
  })
})

test.runIf(isRoot)('without bubblewrap a jailed server does not start, and says what to do', async () => {
  const holder = fileURLToPath(new URL('killed-jailed-server.ts', import.meta.url))
  const change = 'mount --bind /dev/null "$(command -v bwrap)" && exec "$@"'
  const command = ['sh', '-c', change, 'sh', process.execPath, holder, script, '1']
  const { stdout } = await promisify(execFile)('unshare', ['--mount', '--propagation', 'private', ...command])
  expect(JSON.parse(stdout)).toEqual({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(/^MCP server "shell": .*bubblewrap is not installed; run: apt-get install bubblewrap/),
  })
})
