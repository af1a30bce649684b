import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { createConnection } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { EnvironmentStatus, LeaseAnswer, LeaseFiles, TrainError } from '@aworld-train/core'
import type { Client } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, it } from 'vitest'
import { memorySandbox } from '../testing/memory-sandbox.ts'
import { callTool, connectClient, leaseOpen, openLease, openTestServer, request, type TestServer } from '../testing/open-test-server.ts'
import { createLease } from './lease.ts'
import { createLeaseTable } from './lease-table.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function start(options: Parameters<typeof openTestServer>[0] = {}): Promise<TestServer> {
  const server = await openTestServer(options)
  cleanups.push(server.close)
  return server
}

async function connect(server: TestServer, token = server.connectionToken, session = ''): Promise<Client> {
  const client = await connectClient(server.url, { token, headers: { SESSION_ID: session } })
  cleanups.push(() => client.close())
  return client
}

/** Status and body of a request to open a lease. */
async function post(server: TestServer, changes: Record<string, unknown> = {}): Promise<[number, unknown]> {
  const response = await request(server, 'POST', '/v1/leases', { ...leaseOpen, ...changes })
  return [response.status, await response.json()]
}

const died = (text: string) => expect.objectContaining({ code: 'TOOL_SERVER_DIED', message: expect.stringContaining(text) })

describe('opening a lease', () => {
  it('answers how to reach it', async () => {
    const server = await start()
    const before = Date.now()
    const answer = await openLease(server)
    expect(answer).toMatchObject({ url: server.url, tier: 'simulated', notices: ['Files are in memory.'] })
    expect(answer.expiresAt - before).toBeGreaterThanOrEqual(30 * 60_000)
    expect(server.status().leases).toMatchObject([{ id: answer.id, rollout: 'r1', attempt: 1, task: 't1', running: 0 }])
  })

  it('the same attempt gets the same lease, with a token each, however many ask at once', async () => {
    const server = await start()
    const answers = await Promise.all(Array.from({ length: 8 }, () => openLease(server)))
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    expect(server.sandbox.open).toHaveLength(1)
    await callTool(await connect(server, answers[0]!.token), 'notes-server__append', { text: '1' })
    expect(await callTool(await connect(server, answers[7]!.token), 'notes-server__append', { text: '2' })).toBe('1,2')
  })

  it('the same attempt in other words is refused', async () => {
    const server = await start()
    await openLease(server)
    expect(await post(server, { task: 't2' })).toEqual([409, { error: expect.objectContaining({ code: 'LEASE_CONFLICT' }) }])
  })

  it('a newer attempt ends the older, whose files are gone when it is answered', async () => {
    const server = await start()
    const older = await openLease(server)
    const client = await connect(server, older.token)
    await callTool(client, 'notes-server__append', { text: '1' })
    const [closed] = server.sandbox.open
    const newer = await openLease(server, { attempt: 2 })
    expect(server.sandbox.open).not.toContain(closed)
    expect(await callTool(await connect(server, newer.token), 'notes-server__append', { text: '2' })).toBe('2')
    await expect(callTool(client, 'notes-server__append', { text: '3' })).rejects.toMatchObject({ data: died('attempt 1 is over') })
    expect(await post(server)).toEqual([409, { error: expect.objectContaining({ code: 'LEASE_CONFLICT' }) }])
  })

  it('a workspace that cannot be had is a fault, and may be asked for again', async () => {
    const server = await start()
    server.sandbox.refuse(new Error('no user namespaces'))
    expect(await post(server)).toEqual([
      503,
      { error: expect.objectContaining({ code: 'ENVIRONMENT_START_FAILED', message: 'no user namespaces', retryable: true }) },
    ])
    const client = await connect(server, server.connectionToken, 's')
    await expect(callTool(client, 'notes-server__append', { text: '1' })).rejects.toMatchObject({
      data: { code: 'ENVIRONMENT_START_FAILED' },
    })
    server.sandbox.refuse(null)
    expect((await post(server))[0]).toBe(200)
    expect(await callTool(client, 'notes-server__append', { text: '1' })).toBe('1')
  })

  it('a lease above the greatest number is refused until another ends', async () => {
    const server = await start({ maxLeases: 2 })
    const [first] = await Promise.all([openLease(server), openLease(server, { rollout: 'r2' })])
    expect(await post(server, { rollout: 'r3' })).toEqual([503, { error: expect.objectContaining({ code: 'LEASE_LIMIT' }) }])
    await request(server, 'DELETE', `/v1/leases/${first!.id}`)
    expect((await post(server, { rollout: 'r3' }))[0]).toBe(200)
  })

  it('a quota is what is asked for, up to what the server grants', async () => {
    const server = await start({ quota: { memoryBytes: 1e8, processes: 64 }, maxQuota: { memoryBytes: 2e8 } })
    await openLease(server, { quota: { processes: 128, diskBytes: 5e6 } })
    expect(server.sandbox.open[0]!.options.limits).toEqual({ memoryBytes: 1e8, processes: 128, diskBytes: 5e6 })
    expect((await post(server, { rollout: 'r2', quota: { memoryBytes: 2e8 } }))[0]).toBe(200)
    expect(await post(server, { rollout: 'r3', quota: { memoryBytes: 2e8 + 1 } })).toEqual([
      400,
      { error: expect.objectContaining({ code: 'LEASE_INVALID', message: expect.stringContaining('at most 200000000') }) },
    ])
  })

  it.each([
    ['memoryBytes', 67_108_864],
    ['diskBytes', 1_048_576],
    ['processes', 16],
    ['cpuSeconds', 1],
    ['outputBytes', 1_024],
  ])('a quota of less %s than a command needs is refused', async (name, least) => {
    const server = await start()
    expect((await post(server, { quota: { [name]: least } }))[0]).toBe(200)
    expect(await post(server, { rollout: 'r2', quota: { [name]: least - 1 } })).toEqual([
      400,
      { error: expect.objectContaining({ code: 'LEASE_INVALID', message: expect.stringMatching(`quota.${name}: .*>=${least}`) }) },
    ])
  })

  it.each(['memoryBytes', 'diskBytes', 'processes', 'cpuSeconds', 'outputBytes'])(
    'a server of which no ceiling was set grants no endless %s',
    async (name) => {
      const server = await start()
      const [status, answer] = await post(server, { quota: { [name]: 1e15 } })
      expect([status, answer]).toEqual([
        400,
        {
          error: expect.objectContaining({
            code: 'LEASE_INVALID',
            message: expect.stringContaining(`quota.${name} is 1000000000000000; `),
          }),
        },
      ])
      expect(server.sandbox.open).toEqual([])
    },
  )

  it.each([
    ['{', 'not JSON'],
    ['null', 'the body'],
    ['[]', 'the body'],
    [{}, 'version'],
    [{ ...leaseOpen, rollout: '' }, 'rollout'],
    [{ ...leaseOpen, rollout: ' ' }, 'rollout'],
    [{ ...leaseOpen, rollout: 'x'.repeat(513) }, 'rollout'],
    [{ ...leaseOpen, attempt: -1 }, 'attempt'],
    [{ ...leaseOpen, attempt: 1.5 }, 'attempt'],
    [{ ...leaseOpen, sample: '0' }, 'sample'],
    [{ ...leaseOpen, servers: [] }, 'servers'],
    [{ ...leaseOpen, servers: ['desk-srver'] }, 'Did you mean "desk-server"'],
    [{ ...leaseOpen, quota: { memory: 1 } }, 'memory'],
    [{ ...leaseOpen, surprise: 1 }, 'surprise'],
    [`${'['.repeat(20_000)}${']'.repeat(20_000)}`, 'the body'],
  ])('%j is refused with what is wrong in it', async (body, named) => {
    const server = await start()
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const response = await request(server, 'POST', '/v1/leases', Buffer.from(text))
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: expect.objectContaining({ code: 'LEASE_INVALID', message: expect.stringContaining(named) }) },
    ])
    expect(server.status().leases).toEqual([])
  })
})

const openEgress = () => Promise.reject(new Error('There is no network.'))

it('a lease has at most 64 shells, whatever its client calls its sessions', async () => {
  const sandbox = memorySandbox()
  const options = { id: 'l', rollout: 'r', attempt: 0, task: null, limits: {}, net: false }
  const lease = createLease({ ...options, sandbox, openEgress, ttlMs: 1_000, onError: () => {} })
  const shells = await Promise.all(Array.from({ length: 64 }, (_, session) => lease.shells.open(String(session))))
  await expect(lease.shells.open('64')).rejects.toThrow('64 shells are open')
  expect(await lease.shells.open('63')).toBe(shells[63])
})

it('a tool of a lease that fails for ever is reported ten times', async () => {
  const errors: Error[] = []
  const server = await openTestServer({ onError: (error) => errors.push(error) })
  const open = async (rollout: string) => {
    const { token } = await openLease(server, { rollout })
    return await connectClient(server.url, { token })
  }
  const [one, other] = [await open('one'), await open('other')]
  for (let tries = 0; tries < 20; tries++) await expect(callTool(one, 'notes-server__fail', { how: 'bug' })).rejects.toThrow('failed')
  expect(errors).toHaveLength(10)
  await expect(callTool(other, 'notes-server__fail', { how: 'bug' })).rejects.toThrow('failed')
  expect(errors).toHaveLength(11)
  await Promise.all([one.close(), other.close()])
  await server.close()
})

it('a lease that has ended is known until ten thousand others have ended', async () => {
  const maxQuota = { memoryBytes: 1, diskBytes: 1, processes: 1, cpuSeconds: 1, outputBytes: 1 }
  const bounds = { quota: {}, maxQuota, ttlMs: 1_000, maxLeases: 1, mayOpenNet: false }
  const leases = createLeaseTable({ ...bounds, sandbox: memorySandbox(), openEgress, onOpen: () => {}, onError: () => {} })
  const end = async (rollout: string) => {
    const lease = await leases.open({ ...leaseOpen, rollout })
    await lease.end(new TrainError('TOOL_SERVER_DIED', 'The jail died.'))
    return lease
  }
  const first = await end('first')
  for (let index = 0; index < 9_999; index++) await end(String(index))
  expect(leases.find(first.id)).toBe(first)
  await expect(leases.open({ ...leaseOpen, rollout: 'first' })).rejects.toThrow('The jail died.')
  await end('last')
  expect(leases.find(first.id)).toBeUndefined()
})

describe('files', () => {
  it('that are put into a lease are there for its tools', async () => {
    const server = await start()
    const { id, token } = await openLease(server)
    expect((await request(server, 'PUT', `/v1/leases/${id}/files/notes.txt`, Buffer.from('1\n'))).status).toBe(204)
    expect((await request(server, 'PUT', `/v1/leases/${id}/files/a%20b/c%2Fd.bin`, Buffer.alloc(3))).status).toBe(204)
    expect(await callTool(await connect(server, token), 'notes-server__append', { text: '2' })).toBe('1,2')
    expect([...server.sandbox.open[0]!.files.keys()]).toEqual(['/workspace/notes.txt', '/workspace/a b/c/d.bin'])
  })

  it('are read alone, or all that fit a pattern', async () => {
    const server = await start()
    const { id } = await openLease(server)
    const names = ['out/a.txt', 'out/b/c.txt', 'note.txt']
    for (const name of names) await request(server, 'PUT', `/v1/leases/${id}/files/${name}`, Buffer.from(name))
    const one = await request(server, 'GET', `/v1/leases/${id}/files/out/b/c.txt`)
    expect([one.status, await one.text()]).toEqual([200, 'out/b/c.txt'])
    expect((await request(server, 'GET', `/v1/leases/${id}/files/missing`)).status).toBe(400)
    const collect = (body: object) => request(server, 'POST', `/v1/leases/${id}/collections`, body)
    const files = LeaseFiles.parse(await (await collect({ version: 1, patterns: ['out/**'] })).json()).files
    expect(files.map(({ path, content }) => [path, atob(content)])).toEqual([
      ['out/a.txt', 'out/a.txt'],
      ['out/b/c.txt', 'out/b/c.txt'],
    ])
    expect((await collect({ version: 1, patterns: [] })).status).toBe(400)
    for (let index = 0; index < 65; index++) await request(server, 'PUT', `/v1/leases/${id}/files/many/${index}`, Buffer.alloc(0))
    const refused = await collect({ version: 1, patterns: ['many/*'] })
    expect([refused.status, await refused.json()]).toMatchObject([422, { error: { code: 'FILES_REFUSED', boundary: 'agent' } }])
  })

  it.each([
    ['..%2F..%2Fetc%2Fpasswd', Buffer.alloc(1), 400],
    ['%2Fetc%2Fpasswd', Buffer.alloc(1), 400],
    ['%ff', Buffer.alloc(1), 400],
    ['large', Buffer.alloc(101), 413],
  ])('%s is refused', async (name, bytes, status) => {
    const server = await start({ maxFileBytes: 100 })
    const { id } = await openLease(server)
    expect((await request(server, 'PUT', `/v1/leases/${id}/files/${name}`, bytes)).status).toBe(status)
    expect(server.sandbox.open[0]!.files.size).toBe(0)
  })

  it('that are cut off are not there, and those of unknown size are', async () => {
    const server = await start({ maxFileBytes: 100 })
    const { id } = await openLease(server)
    const { port } = new URL(server.url)
    const head = (name: string, more: string) =>
      `PUT /v1/leases/${id}/files/${name} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${server.connectionToken}\r\n${more}\r\n\r\n`
    const leaving = createConnection(Number(port), '127.0.0.1')
    leaving.write(`${head('cut', 'content-length: 5')}01`)
    await expect.poll(() => server.status().leases[0]?.running).toBe(1)
    leaving.destroy()
    await expect.poll(() => server.status().leases[0]?.running).toBe(0)
    const chunked = createConnection(Number(port), '127.0.0.1')
    chunked.write(`${head('whole', 'transfer-encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`)
    expect(String((await once(chunked, 'data'))[0])).toMatch(/^HTTP\/1\.1 204/)
    chunked.destroy()
    expect([...server.sandbox.open[0]!.files]).toEqual([['/workspace/whole', Buffer.from('abc')]])
  })
})

describe('the end of a lease', () => {
  it('comes when it is deleted, once and for all', async () => {
    const server = await start()
    const { id, token } = await openLease(server)
    const client = await connect(server, token)
    for (let time = 0; time < 2; time++) expect((await request(server, 'DELETE', `/v1/leases/${id}`)).status).toBe(204)
    expect(server.sandbox.open).toEqual([])
    await expect(callTool(client, 'notes-server__append', { text: '1' })).rejects.toMatchObject({ data: died('closed') })
    expect(await post(server)).toEqual([410, { error: died('closed') }])
    expect((await request(server, 'GET', `/v1/leases/${id}`)).status).toBe(410)
  })

  it('comes when nobody calls, and not while a call runs', async () => {
    const server = await start({ leaseTtlMs: 2_000 })
    const idle = await openLease(server)
    const call = callTool(await connect(server, server.connectionToken, 'busy'), 'desk-server__wait').catch((error: Error) => error)
    await expect.poll(() => server.waits).toEqual(['begun'])
    await expect.poll(() => server.sandbox.open.length).toBe(1)
    await delay(2_500)
    const [busy, ...others] = server.status().leases
    expect([busy, others]).toEqual([expect.objectContaining({ rollout: 'busy', running: 1 }), []])
    expect((await request(server, 'GET', `/v1/leases/${idle.id}`)).status).toBe(410)
    await request(server, 'DELETE', `/v1/leases/${busy!.id}`)
    expect(await call).toMatchObject({ data: died('closed') })
  })

  it('is put off by asking for the lease, which answers with a new token', async () => {
    const server = await start()
    const { id, expiresAt } = await openLease(server)
    await delay(5)
    const answer = LeaseAnswer.parse(await (await request(server, 'GET', `/v1/leases/${id}`)).json())
    expect(answer.id).toBe(id)
    expect(answer.expiresAt).toBeGreaterThan(expiresAt)
    expect(await callTool(await connect(server, answer.token), 'notes-server__append', { text: '1' })).toBe('1')
  })

  it('comes when its jail dies, and no blank one takes its place', async () => {
    const server = await start()
    const { token, id } = await openLease(server)
    const client = await connect(server, token)
    await callTool(client, 'notes-server__append', { text: '1' })
    server.sandbox.open[0]!.die()
    for (let time = 0; time < 2; time++)
      await expect(callTool(client, 'desk-server__execute', { command: 'pwd' })).rejects.toMatchObject({ data: died('The jail died.') })
    expect(await post(server)).toEqual([410, { error: died('The jail died.') }])
    expect((await request(server, 'PUT', `/v1/leases/${id}/files/a`, Buffer.alloc(1))).status).toBe(410)
    expect(server.sandbox.open).toEqual([])
  })

  it('that its jail dies is seen by a file that is put', async () => {
    const server = await start()
    const { id } = await openLease(server)
    server.sandbox.open[0]!.die()
    expect((await request(server, 'PUT', `/v1/leases/${id}/files/a`, Buffer.alloc(1))).status).toBe(410)
    expect(server.status().leases).toEqual([])
  })

  it('of a session is for good where it has a name, and begins anew where it has none', async () => {
    const server = await start()
    const [named, nameless] = [await connect(server, server.connectionToken, 's'), await connect(server)]
    for (const client of [named, nameless]) await callTool(client, 'notes-server__append', { text: '1' })
    for (const workspace of [...server.sandbox.open]) workspace.die()
    for (const client of [named, nameless])
      await expect(callTool(client, 'notes-server__append', { text: '2' })).rejects.toMatchObject({ data: died('The jail died.') })
    await expect(callTool(named, 'notes-server__append', { text: '3' })).rejects.toMatchObject({ data: died('The jail died.') })
    expect(await callTool(nameless, 'notes-server__append', { text: '3' })).toBe('3')
  })

  it('comes with the server, whose calls are answered before', async () => {
    const server = await start()
    const client = await connect(server, (await openLease(server)).token)
    const call = callTool(client, 'desk-server__wait').catch((error: unknown) => error)
    await expect.poll(() => server.waits).toEqual(['begun'])
    await server.close()
    expect(await call).toBeInstanceOf(Error)
    await expect.poll(() => server.waits).toEqual(['begun', 'cancelled'])
    expect(server.sandbox.open).toEqual([])
  })
})

it.each([
  ['PUT', '/v1/leases', 405],
  ['POST', '/v1/leases/x', 405],
  ['DELETE', '/v1/leases/x/files/a', 405],
  ['GET', '/v1/leases/x', 404],
  ['GET', '/v1/leases/x/file', 404],
  ['GET', '/v2/leases', 404],
  ['GET', '/', 404],
])('%s %s is answered with %i', async (method, path, status) => {
  const server = await start()
  expect((await request(server, method, path)).status).toBe(status)
})

it.each(['//', '//v1/leases', '//[/'])('the path %s is answered with 404', async (path) => {
  const server = await start()
  // `fetch` would read such a path as the name of a host.
  const asking = httpRequest(new URL(server.url), { path, headers: { authorization: `Bearer ${server.connectionToken}` } }).end()
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  response.resume()
  expect(response.statusCode).toBe(404)
})

it('what is missing is said by the server that needs it', async () => {
  const server = await start()
  const status = EnvironmentStatus.parse(await (await request(server, 'GET', '/v1/status')).json())
  expect(status).toEqual(server.status())
  expect(status.servers).toMatchObject([
    { name: 'notes-server', missing: ['Set PAPER_BASE_URL.'] },
    { name: 'desk-server', missing: [] },
  ])
})
