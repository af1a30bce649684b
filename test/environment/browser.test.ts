import { LeaseAnswer, type Sandbox } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import type { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { browserFolders } from '../../packages/tools/src/servers/browser/browser-folders.ts'
import { toolServers } from '../../packages/tools/src/table.ts'
import {
  callTool,
  connectClient,
  leaseOpen,
  openTestServer,
  request,
  type TestServer,
} from '../../packages/tools/src/testing/open-test-server.ts'
import { unreapedBelowUs } from './processes.ts'

let sandbox: Sandbox
let server: TestServer
beforeAll(async () => {
  sandbox = await openSandbox({ tier: 'bubblewrap', readable: browserFolders() })
  server = await openTestServer({ sandbox, servers: toolServers })
})
afterAll(async () => {
  await server.close()
  await sandbox.close()
  expect(unreapedBelowUs()).toEqual([])
})

interface Desk {
  readonly id: string
  readonly client: Client
  call(tool: string, input?: Record<string, unknown>): Promise<string>
}

/** A lease whose workspace serves `pages` on its own loopback, at port 8000. */
async function openDesk(rollout: string, pages: Readonly<Record<string, string>> = {}): Promise<Desk> {
  const { id, token } = LeaseAnswer.parse(await (await request(server, 'POST', '/v1/leases', { ...leaseOpen, rollout })).json())
  for (const [name, text] of Object.entries(pages)) await request(server, 'PUT', `/v1/leases/${id}/files/site/${name}`, Buffer.from(text))
  const client = await connectClient(server.url, { token })
  if (Object.keys(pages).length > 0) {
    const serve =
      'python3 -m http.server 8000 --bind 127.0.0.1 --directory site >/dev/null 2>&1 & until curl -so /dev/null 127.0.0.1:8000; do sleep 0.1; done'
    await callTool(client, 'terminal-server__execute_command', { command: serve })
  }
  return { id, client, call: (tool, input = {}) => callTool(client, `browser-server__${tool}`, input) }
}

test('two leases browse at once, each with its own pages', { timeout: 120_000 }, async () => {
  const fruits = ['fig', 'plum']
  const desks = await Promise.all(fruits.map((fruit) => openDesk(fruit, { 'index.html': `<title>${fruit}</title><h1>One ${fruit}</h1>` })))
  const snapshots = await Promise.all(
    desks.map(async ({ call }) => {
      await call('browser_navigate', { url: 'http://127.0.0.1:8000/' })
      return await call('browser_snapshot')
    }),
  )
  for (const [index, snapshot] of snapshots.entries()) {
    expect(snapshot).toContain(`heading "One ${fruits[index]}"`)
    expect(snapshot).not.toContain(fruits[1 - index])
  }
  for (const { client, id } of desks) {
    await client.close()
    await request(server, 'DELETE', `/v1/leases/${id}`)
  }
})
