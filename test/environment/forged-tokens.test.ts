import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EnvironmentStatus, LeaseAnswer } from '@aworld-train/core'
import { environmentFolder, readConnection } from '@aworld-train/environment'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { forger, forgeries } from '../../packages/tools/src/testing/forged-tokens.ts'
import { leaseOpen } from '../../packages/tools/src/testing/open-test-server.ts'
import { runCli } from '../support/run-cli.ts'

const folder = mkdtempSync(join(tmpdir(), 'env-forged-'))
let lease: LeaseAnswer
let right: string

beforeAll(async () => {
  expect((await runCli(['env', 'start', '--port', '0'], { cwd: folder })).code).toBe(0)
  const connection = readConnection(join(folder, environmentFolder))!
  right = connection.token
  lease = LeaseAnswer.parse(await (await ask(connection.url, right, 'POST', '/v1/leases', leaseOpen)).json())
})
afterAll(async () => {
  await runCli(['env', 'stop'], { cwd: folder })
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

async function ask(url: string, token: string, method: string, path: string, body?: object): Promise<Response> {
  return await fetch(new URL(path, url), {
    method,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
    },
    ...(body && { body: JSON.stringify(body) }),
  })
}

/** Everything that a token may open, each with what it would leave behind. */
const routes = (id: string): readonly (readonly [method: string, path: string, body?: object])[] => [
  ['POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
  [
    'POST',
    '/mcp',
    {
      jsonrpc: '2.0',
      id: 2,
      method: 'tools/call',
      params: { name: 'terminal-server__execute_command', arguments: { command: 'touch forged' } },
    },
  ],
  ['POST', '/v1/leases', { ...leaseOpen, rollout: 'forged' }],
  ['GET', `/v1/leases/${id}`],
  ['PUT', `/v1/leases/${id}/files/forged`, {}],
  ['POST', `/v1/leases/${id}/commands`, { command: 'touch forged' }],
  ['DELETE', `/v1/leases/${id}`],
  ['GET', '/v1/status'],
]

/** A scope that the server signed itself is no forgery with these. */
const rightForLeases = new Set(['a lease that there is not', 'an end in more than an hour'])

it.each(Object.keys(forgeries))('a forged token opens nothing of a server that runs: %s', async (name) => {
  const key = createPrivateKey(readFileSync(join(folder, environmentFolder, 'key.pem')))
  for (const scope of ['files', 'terminal files', 'leases'].filter((each) => each !== 'leases' || !rightForLeases.has(name))) {
    const token = forgeries[name]!(forger({ key, audience: lease.url, lease: lease.id, scope }))
    for (const [method, path, body] of routes(lease.id)) {
      const { status } = await ask(lease.url, token, method, path, body)
      const isRollouts = name === 'a lease that there is not' && path !== '/mcp'
      expect([scope, method, path, status]).toEqual([scope, method, path, isRollouts ? 403 : 401])
    }
  }
})

it('what was forged left nothing behind', async () => {
  const status = EnvironmentStatus.parse(await (await ask(lease.url, right, 'GET', '/v1/status')).json())
  expect(status.leases.map(({ id }) => id)).toEqual([lease.id])
  const command = { command: 'test -z "$(ls -A)"' }
  expect((await ask(lease.url, right, 'POST', `/v1/leases/${lease.id}/commands`, command)).status).toBe(204)
})
