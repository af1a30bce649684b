// @module-tag quick
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LeaseAnswer } from '@aworld-train/core'
import { environmentFolder, readConnection } from '@aworld-train/environment'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { callTool, connectClient, leaseOpen } from '../../packages/tools/src/testing/open-test-server.ts'
import { repository, runCli } from '../support/run-cli.ts'

/** Tools that answer, and let an error happen where nobody waits for it. */
const faulty = `import { spawn } from 'node:child_process'
import { defineTool } from '@aworld-train/tools'
import { z } from 'zod'

const fail = (how) => {
  throw new Error('nobody caught this ' + how)
}
const ways = {
  timer: () => setTimeout(() => fail('timer'), 5),
  stream: () => spawn('echo', ['x']).stdout.on('data', () => fail('stream')),
  rejection: () => void Promise.reject(new Error('nobody caught this rejection')),
}
export default {
  name: 'faulty-server', scope: 'files', description: 'Fails later.', needs: [],
  tools: [defineTool({
    name: 'fail_later', description: 'Fails later.', input: z.object({ how: z.string() }), output: z.object({}),
    call: async ({ how }) => { ways[how](); return {} },
    toText: () => 'begun',
  })],
}
`

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'env-contained-'))
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'), 'junction')
  mkdirSync(join(folder, 'tool-servers', 'faulty'), { recursive: true })
  writeFileSync(join(folder, 'tool-servers', 'faulty', 'server.mjs'), faulty)
})
afterEach(async () => {
  await runCli(['env', 'stop'], { cwd: folder })
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

it.each(['bubblewrap', 'simulated'])('an error that nobody catches ends its lease, is logged, and ends nothing else: %s', async (tier) => {
  expect((await runCli(['env', 'start', '--port', '0', '--tier', tier], { cwd: folder })).code).toBe(0)
  const { url, token } = readConnection(join(folder, environmentFolder))!
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const open = async (rollout: string) => {
    const body = JSON.stringify({ ...leaseOpen, rollout })
    return await connectClient(url, {
      token: LeaseAnswer.parse(await (await fetch(new URL('/v1/leases', url), { method: 'POST', headers, body })).json()).token,
    })
  }
  const run = (client: Awaited<ReturnType<typeof open>>, command: string) =>
    callTool(client, 'terminal-server__execute_command', { command })
  const other = await open('other')
  await run(other, 'word=fig')
  for (const how of ['timer', 'stream', 'rejection']) {
    const client = await open(how)
    expect(await callTool(client, 'faulty-server__fail_later', { how })).toBe('begun')
    const died = () => run(client, 'true').catch((error: { data?: { code?: string; message?: string } }) => error.data)
    await expect.poll(died).toMatchObject({ code: 'TOOL_SERVER_DIED', message: expect.stringContaining(`nobody caught this ${how}`) })
    expect(await run(other, 'echo $word')).toContain('fig')
    await client.close()
  }
  expect(
    readFileSync(join(folder, environmentFolder, 'server.log'), 'utf8').match(/^Error: nobody caught this \w+\n {4}at /gm),
  ).toHaveLength(3)
  await other.close()
})
