import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LeaseAnswer } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { byOther, type Forger, forger, forgeries, other, rsa } from '../testing/forged-tokens.ts'
import { callTool, connectClient, leaseOpen, openLease, openTestServer, request, type TestServer } from '../testing/open-test-server.ts'
import { createTokens } from './tokens.ts'

const scratch = mkdtempSync(join(tmpdir(), 'tokens-'))
const keyFile = join(scratch, 'keys', 'environment.pem')
let server: TestServer
let key: KeyObject
let lease: LeaseAnswer
let forge: Forger
beforeAll(async () => {
  server = await openTestServer({ keyFile })
  key = createPrivateKey(readFileSync(keyFile))
  lease = await openLease(server)
  forge = forger({ key, audience: server.url, lease: lease.id })
})
afterAll(async () => {
  await server.close()
  rmSync(scratch, { recursive: true })
})

async function ask(authorization: string | undefined): Promise<{ status: number; challenge: string | null; body: string }> {
  const response = await fetch(server.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(authorization !== undefined && { authorization }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  })
  return { status: response.status, challenge: response.headers.get('www-authenticate'), body: await response.text() }
}

it('a token that the server signed for the lease opens it', async () => {
  expect(await ask(`Bearer ${forge.token()}`)).toMatchObject({ status: 200, body: expect.stringContaining('notes-server__append') })
})

describe('a token that opens nothing is answered as every other', () => {
  it.each(Object.keys(forgeries))('%s', async (name) => {
    const { status, challenge, body } = await ask(`Bearer ${forgeries[name]!(forge)}`)
    const description = 'The token opens nothing here, or no longer.'
    expect({ status, challenge, body: JSON.parse(body) }).toEqual({
      status: 401,
      challenge: `Bearer error="invalid_token", error_description="${description}"`,
      body: { error: 'invalid_token', error_description: description },
    })
  })

  it.each([undefined, '', 'Bearer', 'Bearer ', 'Basic dXNlcjpwYXNz'])('a header that is none: %j', async (authorization) => {
    expect((await ask(authorization)).status).toBe(401)
  })
})

it('no key is fetched from where a token says', async () => {
  let requests = 0
  const keys = createServer((_request, response) => {
    requests++
    response.end(JSON.stringify({ keys: [createPublicKey(other).export({ format: 'jwk' })] }))
  }).listen(0, '127.0.0.1')
  await once(keys, 'listening')
  const jku = `http://127.0.0.1:${(keys.address() as AddressInfo).port}/`
  for (const header of [{ jku }, { x5u: jku }]) expect((await ask(`Bearer ${forge.token({ header, by: byOther })}`)).status).toBe(401)
  keys.close()
  expect(requests).toBe(0)
})

it('a header that is larger than any token is refused before it is read', async () => {
  expect((await ask(`Bearer ${'a'.repeat(20_000)}`)).status).toBe(431)
})

it("a rollout's token lives as long as its lease, and names it", async () => {
  const payload = JSON.parse(Buffer.from(lease.token.split('.')[1]!, 'base64url').toString())
  expect(payload).toMatchObject({ iss: 'aworld-train-environment', aud: lease.url, sub: 'r1.1', jti: lease.id, scope: 'terminal files' })
  expect(payload.exp - payload.iat).toBe(1_800)
  expect(Math.abs(payload.exp * 1_000 - lease.expiresAt)).toBeLessThan(10_000)
})

describe('scopes', () => {
  it('a token opens the families of the servers that its lease was opened for', async () => {
    const response = await request(server, 'POST', '/v1/leases', { ...leaseOpen, rollout: 'narrow', servers: ['notes-server'] })
    const { token } = LeaseAnswer.parse(await response.json())
    const client = await connectClient(server.url, { token })
    expect(new Set((await client.listTools()).tools.map(({ name }) => name.split('__')[0]))).toEqual(new Set(['notes-server']))
    await expect(callTool(client, 'desk-server__execute', { command: 'pwd' })).rejects.toThrow('There is no tool')
    await client.close()
    const wide = await fetch(server.url, { method: 'POST', headers: { authorization: `Bearer ${token}`, mcp_servers: 'desk-server' } })
    expect([wide.status, wide.headers.get('www-authenticate')]).toEqual([403, expect.stringContaining('scope="terminal"')])
  })

  it.each([
    ['POST', '/v1/leases'],
    ['GET', '/v1/leases/x'],
    ['DELETE', '/v1/leases/x'],
    ['PUT', '/v1/leases/x/files/a'],
    ['GET', '/v1/status'],
  ])("a rollout's token never reaches %s %s, of its own lease or another's", async (method, path) => {
    const answers = await Promise.all(
      [path, path.replace('/x', `/${lease.id}`)].map(async (each) => {
        const response = await request(server, method, each, method === 'PUT' || method === 'POST' ? {} : undefined, lease.token)
        return [response.status, response.headers.get('www-authenticate'), await response.text()]
      }),
    )
    expect(answers[0]).toEqual([403, expect.stringContaining('scope="leases"'), expect.stringContaining('insufficient_scope')])
    expect(answers[1]).toEqual(answers[0])
  })
})

describe('the key', () => {
  it('is readable by its owner alone, and makes tokens outlive the server', async () => {
    if (process.platform !== 'win32') expect(statSync(keyFile).mode & 0o777).toBe(0o600)
    const publicUrl = 'http://tools.example.com/mcp'
    const first = await openTestServer({ keyFile, publicUrl })
    await first.close()
    const second = await openTestServer({ keyFile, publicUrl, port: 0 })
    expect(second.url).toBe(publicUrl)
    const verified = await createTokens(key, publicUrl).verifyAccessToken(first.connectionToken)
    expect(verified.scopes).toContain('leases')
    await second.close()
  })

  it('is refused where others can read it, more than the group of a mounted secret, or where it is none', async () => {
    const open = join(scratch, 'open.pem')
    writeFileSync(open, readFileSync(keyFile), { mode: 0o600 })
    chmodSync(open, 0o644)
    if (process.platform !== 'win32') await expect(openTestServer({ keyFile: open })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    // Only root may give a file away.
    if (process.getuid?.() === 0) {
      const mounted = join(scratch, 'mounted.pem')
      writeFileSync(mounted, readFileSync(keyFile))
      chownSync(mounted, 12_345, 12_345)
      chmodSync(mounted, 0o440)
      await (await openTestServer({ keyFile: mounted })).close()
      chmodSync(mounted, 0o444)
      await expect(openTestServer({ keyFile: mounted })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    }
    for (const text of ['', 'no key', rsa.export({ type: 'pkcs8', format: 'pem' })]) {
      const bad = join(scratch, 'bad.pem')
      writeFileSync(bad, text, { mode: 0o600 })
      await expect(openTestServer({ keyFile: bad })).rejects.toThrow(/bad\.pem holds no Ed25519 key/)
    }
  })
})

describe('pages in a browser', () => {
  it.each([
    ['http://example.com', 403],
    ['null', 403],
    ['http://127.0.0.1.example.com', 403],
    ['http://localhost:3000', 200],
  ])('of origin %s are answered with %i', async (origin, status) => {
    const response = await fetch(new URL('/v1/status', server.url), {
      headers: { origin, authorization: `Bearer ${server.connectionToken}` },
    })
    expect(response.status).toBe(status)
  })
})
