import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LeaseAnswer } from '@aworld-train/protocol'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callTool, connectClient, leaseOpen, openTestServer, request, type TestServer } from '../testing/open-test-server.ts'
import { createTokens } from './tokens.ts'

const scratch = mkdtempSync(join(tmpdir(), 'tokens-'))
const keyFile = join(scratch, 'keys', 'environment.pem')
let server: TestServer
let key: KeyObject
let lease: LeaseAnswer
beforeAll(async () => {
  server = await openTestServer({ keyFile })
  key = createPrivateKey(readFileSync(keyFile))
  lease = LeaseAnswer.parse(await (await request(server, 'POST', '/v1/leases', leaseOpen)).json())
})
afterAll(async () => {
  await server.close()
  rmSync(scratch, { recursive: true })
})

const encode = (part: unknown) => Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')
const now = () => Math.floor(Date.now() / 1_000)
const other = generateKeyPairSync('ed25519').privateKey
const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey

/** Claims as the server writes them, with changes; `undefined` leaves one out. */
function claims(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const right = {
    scope: 'files',
    iss: 'aworld-train-environment',
    aud: server.url,
    sub: 'r1.1',
    jti: lease.id,
    iat: now(),
    exp: now() + 60,
  }
  return { ...right, ...changes }
}

interface Parts {
  readonly header?: Record<string, unknown>
  readonly payload?: unknown
  /** The server's own by default. */
  readonly by?: (input: Buffer) => Buffer
}

function token({ header = {}, payload = claims(), by = (input) => sign(null, input, key) }: Parts = {}): string {
  const input = `${encode({ alg: 'EdDSA', ...header })}.${encode(payload)}`
  return `${input}.${by(Buffer.from(input)).toString('base64url')}`
}
const byOther = (input: Buffer) => sign(null, input, other)
const byHmacOf = (secret: string | Buffer) => (input: Buffer) => createHmac('sha256', secret).update(input).digest()
const publicPem = () => createPublicKey(key).export({ type: 'spki', format: 'pem' })

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
  expect(await ask(`Bearer ${token()}`)).toMatchObject({ status: 200, body: expect.stringContaining('notes-server__append') })
})

const badTokens: readonly (readonly [string, () => string])[] = [
  ['no token at all', () => 'x.y.z'],
  ['alg none, unsigned', () => token({ header: { alg: 'none' }, by: () => Buffer.alloc(0) })],
  ['alg None, signed', () => token({ header: { alg: 'None' } })],
  ['HS256 by the public key as PEM', () => token({ header: { alg: 'HS256' }, by: byHmacOf(publicPem()) })],
  [
    'HS256 by the bytes of the public key',
    () => token({ header: { alg: 'HS256' }, by: byHmacOf(createPublicKey(key).export({ type: 'spki', format: 'der' })) }),
  ],
  ['RS256 by a key of its own', () => token({ header: { alg: 'RS256' }, by: (input) => sign('sha256', input, rsa) })],
  ['an alg that is no string', () => token({ header: { alg: ['EdDSA'] } })],
  ['another key', () => token({ by: byOther })],
  ['another key, by a kid that climbs', () => token({ header: { kid: '../../../../../../dev/null' }, by: byOther })],
  ['another key, carried in the header', () => token({ header: { jwk: createPublicKey(other).export({ format: 'jwk' }) }, by: byOther })],
  ['a header that must be understood', () => token({ header: { crit: ['http://example.com/x'], 'http://example.com/x': true } })],
  ['no signature', () => token({ by: () => Buffer.alloc(0) })],
  [
    'the signature of other claims',
    () => [...token().split('.').slice(0, 1), encode(claims({ sub: 'r2.1' })), token().split('.')[2]].join('.'),
  ],
  ['a part too many', () => `${token()}.x`],
  ['expired', () => token({ payload: claims({ iat: now() - 120, exp: now() - 60 }) })],
  ['expired a moment ago', () => token({ payload: claims({ iat: now() - 120, exp: now() - 1 }) })],
  ['no end', () => token({ payload: claims({ exp: undefined }) })],
  ['an end that is a string', () => token({ payload: claims({ exp: String(now() + 60) }) })],
  ['an end without end', () => token({ payload: JSON.stringify(claims()).replace(/"exp":\d+/, '"exp":1e999') })],
  ['an end in more than an hour', () => token({ payload: claims({ exp: now() + 3_700 }) })],
  ['a beginning in the future', () => token({ payload: claims({ nbf: now() + 120 }) })],
  ['signed in the future', () => token({ payload: claims({ iat: now() + 120, exp: now() + 180 }) })],
  ['another audience', () => token({ payload: claims({ aud: 'http://127.0.0.1:1/mcp' }) })],
  ['an audience with more behind it', () => token({ payload: claims({ aud: `${server.url}/` }) })],
  ['audiences, ours among them', () => token({ payload: claims({ aud: [server.url, 'http://example.com/'] }) })],
  ['no audience', () => token({ payload: claims({ aud: undefined }) })],
  ['another issuer', () => token({ payload: claims({ iss: 'someone' }) })],
  ['no subject', () => token({ payload: claims({ sub: undefined }) })],
  ['a lease that is a number', () => token({ payload: claims({ jti: 7 }) })],
  ['a lease that there is not', () => token({ payload: claims({ jti: '00000000-0000-4000-8000-000000000000' }) })],
  ['a claim twice', () => token({ payload: JSON.stringify(claims()).replace('"jti"', '"jti":"x","jti"') })],
  ['a claim more', () => token({ payload: claims({ admin: true }) })],
  ['claims in a list', () => token({ payload: [claims()] })],
  ['claims that are no JSON', () => token({ payload: '{' })],
  ['huge claims', () => token({ payload: claims({ sub: 'r'.repeat(9_000) }) })],
]

describe('a token that opens nothing is answered as every other', () => {
  it.each(badTokens)('%s', async (_name, make) => {
    const { status, challenge, body } = await ask(`Bearer ${make()}`)
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
  for (const header of [{ jku }, { x5u: jku }]) expect((await ask(`Bearer ${token({ header, by: byOther })}`)).status).toBe(401)
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
  expect(Math.abs(payload.exp * 1_000 - lease.expiresAt)).toBeLessThan(2_000)
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

  it('is refused where others can read it, or where it is none', async () => {
    const open = join(scratch, 'open.pem')
    writeFileSync(open, readFileSync(keyFile), { mode: 0o600 })
    chmodSync(open, 0o644)
    if (process.platform !== 'win32') await expect(openTestServer({ keyFile: open })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
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
