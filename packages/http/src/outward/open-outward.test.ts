import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { ToolError } from '@aworld-train/core'
import { afterAll, afterEach, expect, it } from 'vitest'
import { type OpenOutward, openOutward } from './open-outward.ts'
import type { OutwardOptions, OutwardService } from './outward-options.ts'

const directory = await mkdtemp(join(tmpdir(), 'outward-'))
const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})
afterAll(() => rm(directory, { recursive: true }))
const { signal } = new AbortController()
let files = 0
const newFile = () => join(directory, `${files++}.jsonl`)

/** A server on loopback, the requests that reached it, and its base URL. */
async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    answer(request, response)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  closing.push(async () => {
    server.closeAllConnections()
    server.close()
  })
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

async function open(options: OutwardOptions): Promise<OpenOutward> {
  const outward = await openOutward(options)
  closing.push(() => outward.close())
  return outward
}
const service = (baseUrl: string, rest: Partial<OutwardService> = {}): OutwardService => ({ name: 'search', baseUrl, ...rest })
const failure = (pending: Promise<unknown>): Promise<Error> =>
  pending.then(
    () => new Error('It did not fail.'),
    (error: Error) => error,
  )

it("adds a service's key, parameters and headers, and lets none of its secrets out", async () => {
  const key = 'tvly-0123456789'
  const { requests, url } = await serve(({ url = '', headers }, response) =>
    response.end(`${url} ${headers['authorization']} ${headers['x-own']}`),
  )
  const secret = { headers: { authorization: `Bearer ${key}` }, query: { key, cx: 'engine' }, secrets: [key] }
  const path = newFile()
  const outward = await open({ services: [service(`${url}/v1/`, secret)], cassette: { path, mode: 'record' } })
  const answer = await outward.service('search', '/find?q=a%20b', { headers: { 'x-own': 'yes' } }, signal)
  expect(requests[0]!.url).toBe(`/v1/find?q=a+b&key=${key}&cx=engine`)
  expect(answer).toMatchObject({ status: 200, url: `${url}/v1/find?q=a%20b` })
  expect(answer.bytes.toString()).toBe('/v1/find?q=a+b&key=[redacted]&cx=engine Bearer [redacted] yes')
  expect(await readFile(path, 'utf8')).not.toContain(key)
  expect([outward.hasService('search'), outward.hasService('other')]).toEqual([true, false])
})

it.each([
  ['ftp://example.com/a', 'Only http and https'],
  ['file:///etc/passwd', 'Only http and https'],
  ['no address', 'is no address'],
  ['http://user:word@example.com/', 'leave them away'],
  ['http://example.com:8080/', 'Port 8080 of example.com cannot be read'],
  ['http://example.com:0/', 'Port 0'],
  ['http://127.0.0.1/', '127.0.0.1 is not on the public web'],
  ['http://[::ffff:10.0.0.1]/', 'is not on the public web'],
  ['http://localhost/', 'localhost is not on the public web'],
])('does not read %s', async (address, message) => {
  const outward = await open({ services: [] })
  const error = await failure(outward.fetch(address, {}, signal))
  expect(error).toBeInstanceOf(ToolError)
  expect(error.message).toContain(message)
})

it('judges every address that a page leads on to, and shows none of them the key', async () => {
  const elsewhere = await serve((_, response) => response.end('elsewhere'))
  const page = await serve(({ url }, response) => {
    const target = { '/private': 'http://10.0.0.5/', '/file': 'file:///etc/passwd', '/mirror': 'https://pages.test/x', '/near': '/end' }[
      url!
    ]
    if (url === '/loop') response.writeHead(302, { location: '/loop' })
    else if (target) response.writeHead(302, { location: target })
    response.end(`${url}`)
  })
  const outward = await open({
    services: [service(page.url, { headers: { authorization: 'Bearer secret-key' }, secrets: ['secret-key'] })],
    web: { mirrors: { 'https://pages.test': elsewhere.url } },
  })
  const ask = (path: string) => outward.service('search', path, { headers: { cookie: 'a=b' } }, signal)
  expect((await failure(ask('/private'))).message).toContain('10.0.0.5 is not on the public web')
  expect((await failure(ask('/file'))).message).toContain('Only http and https')
  expect((await failure(ask('/loop'))).message).toContain('leads on more than 5 times')
  expect((await ask('/near')).url).toBe(`${page.url}/end`)
  expect(await ask('/mirror')).toMatchObject({ url: 'https://pages.test/x', bytes: Buffer.from('elsewhere') })
  expect(elsewhere.requests[0]!.headers).not.toHaveProperty('authorization')
  expect(elsewhere.requests[0]!.headers).not.toHaveProperty('cookie')
  const posted = await outward.service('search', '/mirror', { method: 'POST', body: 'mine' }, signal)
  expect([posted.status, elsewhere.requests.length]).toEqual([302, 1])
})

it.each([
  [{ services: [service('localhost:8888')] }, 'The base URL of the service "search" is "localhost:8888", which is no http address'],
  [{ services: [], web: { mirrors: { 'https://pages.test': 'here' } } }, 'The mirror of https://pages.test is "here"'],
  [{ services: [], web: { mirrors: { 'pages.test': 'http://127.0.0.1' } } }, 'The origin is "pages.test"'],
])('refuses addresses that are none: %j', async (options, message) => {
  const error = await failure(openOutward(options))
  expect(error).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining(message) })
})

it('takes no path that leads out of its service', async () => {
  const { requests, url } = await serve((_, response) => response.end())
  const outward = await open({ services: [service(`${url}/api`)] })
  for (const path of ['/../admin', '.example.com/', '@example.com/', '/%2e%2e/admin'])
    expect((await failure(outward.service('search', path, {}, signal))).message).toContain('leads out of the service')
  expect(requests).toEqual([])
})

it('asks the part of a service that its name carries, and the mirror of an origin, wherever a path seems to lead', async () => {
  const { requests, url } = await serve(({ url: path }, response) => response.end(path))
  const outward = await open({ services: [{ name: 'wiki', baseUrl: `${url}/*` }], web: { mirrors: { 'https://pages.test': url } } })
  expect((await outward.service('wiki:de', '/w?a=1', {}, signal)).bytes.toString()).toBe('/de/w?a=1')
  expect((await failure(outward.service('wiki:../x', '/w', {}, signal))).message).toContain('is no part of the service')
  expect((await outward.fetch('https://pages.test//127.0.0.1:1/x?y', {}, signal)).bytes.toString()).toBe('//127.0.0.1:1/x?y')
  expect(requests).toHaveLength(2)
})

it('counts an answer as it is unpacked', async () => {
  const bomb = gzipSync(Buffer.alloc(20_000_000))
  const { url } = await serve(({ url }, response) => {
    if (url === '/bomb') response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)
    else if (url === '/long') response.end(Buffer.alloc(1001))
    else if (url === '/odd') response.writeHead(200, { 'content-encoding': 'zstd' }).end(bomb)
    else if (url === '/damaged') response.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip')
    else response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('small'))
  })
  const outward = await open({ services: [service(url)] })
  const ask = (path: string, maxBytes?: number) => outward.service('search', path, { maxBytes }, signal)
  expect((await failure(ask('/bomb'))).message).toContain('is larger than 10000000 bytes')
  expect((await failure(ask('/long', 1000))).message).toContain('is larger than 1000 bytes')
  expect((await ask('/long', 1001)).bytes).toHaveLength(1001)
  expect((await failure(ask('/odd'))).message).toContain('is packed as "zstd"')
  expect((await failure(ask('/damaged'))).message).toContain('cannot be unpacked')
  expect((await ask('/small')).bytes.toString()).toBe('small')
})

it('asks again where the other side is busy, and says when it stays so', async () => {
  const { requests, url } = await serve((_, response) => {
    if (requests.length < 3) response.writeHead(503, { 'retry-after': '0' }).end()
    else if (requests.length === 3) response.end('at last')
    else response.writeHead(429, { 'retry-after': '0' }).end()
  })
  const path = newFile()
  const outward = await open({ services: [service(url)], cassette: { path, mode: 'record' } })
  expect((await outward.service('search', '/a', {}, signal)).bytes.toString()).toBe('at last')
  const error = await failure(outward.service('search', '/b', {}, signal))
  expect(error).toBeInstanceOf(ToolError)
  expect(error.message).toContain('the service "search" is asked too often')
  expect(requests).toHaveLength(6)
  expect((await readFile(path, 'utf8')).split('\n')).toHaveLength(2)
})

it('ends with a sentence when the time is over or nobody answers, and with the reason of who gave up', async () => {
  const { url } = await serve(() => {})
  const outward = await open({ services: [service(url)] })
  expect((await failure(outward.service('search', '/', { timeoutMs: 30 }, signal))).message).toContain(
    'did not answer in full within 0.03 s',
  )
  const giveUp = new AbortController()
  const pending = failure(outward.service('search', '/', {}, giveUp.signal))
  giveUp.abort(new Error('enough'))
  expect((await pending).message).toBe('enough')
  const absent = failure(outward.service('absent', '/', {}, signal))
  expect((await absent).message).toContain('The service "absent" is not configured here')
})

it('says that a connection failed after it was tried again', async () => {
  const outward = await open({ services: [{ name: 'gone', baseUrl: 'http://127.0.0.1:1' }] })
  const error = await failure(outward.service('gone', '/', {}, signal))
  expect(error).toBeInstanceOf(ToolError)
  expect(error.message).toContain('The connection to the service "gone" failed')
})

it('gives everybody the first answer, and one call to those who ask at the same time', async () => {
  const { requests, url } = await serve((_, response) => response.end(`answer ${requests.length}`))
  const path = newFile()
  const outward = await open({ services: [service(url)], cassette: { path, mode: 'record' } })
  const texts = async (world: OpenOutward) => {
    const responses = await Promise.all(
      ['/a?x=1&y=2', '/a?y=2&x=1', '/a?x=1&y=2'].map((target) => world.service('search', target, {}, signal)),
    )
    return responses.map(({ bytes }) => bytes.toString())
  }
  expect(await texts(outward)).toEqual(['answer 1', 'answer 1', 'answer 1'])
  expect(await texts(outward)).toEqual(['answer 1', 'answer 1', 'answer 1'])
  const replay = await open({ services: [], cassette: { path, mode: 'replay' } })
  expect(await texts(replay)).toEqual(['answer 1', 'answer 1', 'answer 1'])
  expect(requests).toHaveLength(1)
  expect([replay.hasService('search'), replay.hasService('other')]).toEqual([true, false])
})

it('goes on with a shared call when the first who asked gives up, and ends it when all have', async () => {
  let answer = (_text: string) => {}
  let ended = 0
  const { requests, url } = await serve((_, response) => {
    response.on('close', () => ended++)
    answer = (text) => response.end(text)
  })
  const outward = await open({ services: [service(url)], cassette: { path: newFile(), mode: 'record' } })
  const first = new AbortController()
  const second = new AbortController()
  const ask = (caller: AbortController) => outward.service('search', '/a', {}, caller.signal)
  const pending = [failure(ask(first)), ask(second)] as const
  const reached = async (count: number) => {
    while (requests.length < count) await new Promise(setImmediate)
  }
  await reached(1)
  first.abort(new Error('first left'))
  expect((await pending[0]).message).toBe('first left')
  answer('for the second')
  expect((await pending[1]).bytes.toString()).toBe('for the second')

  const third = new AbortController()
  const left = failure(outward.service('search', '/b', {}, third.signal))
  await reached(2)
  third.abort(new Error('all left'))
  await left
  while (ended < 2) await new Promise(setImmediate)
})

it('replays bytes, statuses, addresses and errors as they were, and asks nobody', async () => {
  const bytes = randomBytes(1000)
  const page = await serve(({ url }, response) => {
    if (url === '/bytes') response.writeHead(200, { 'content-type': 'image/png' }).end(bytes)
    else if (url === '/moved') response.writeHead(301, { location: '/there' }).end()
    else if (url === '/private') response.writeHead(302, { location: 'http://10.0.0.5/' }).end()
    else response.writeHead(404, { 'content-type': 'text/plain' }).end('ä gone')
  })
  const path = newFile()
  const web = { mirrors: { 'https://pages.test': page.url } }
  const ask = async (world: OpenOutward) =>
    Promise.all(
      ['/bytes', '/moved', '/private'].map((each) =>
        world.fetch(`https://pages.test${each}`, {}, signal).catch((error: Error) => error.message),
      ),
    )
  const recording = await open({ services: [], web, cassette: { path, mode: 'record' } })
  const answers = await ask(recording)
  expect(answers).toMatchObject([
    { status: 200, contentType: 'image/png', bytes },
    { status: 404, url: 'https://pages.test/there', bytes: Buffer.from('ä gone') },
    '10.0.0.5 is not on the public web, and only addresses there can be read; use another source.',
  ])
  const count = page.requests.length
  const replay = await open({ services: [], cassette: { path, mode: 'replay' } })
  expect(await ask(replay)).toEqual(answers)
  expect(page.requests).toHaveLength(count)
  expect((await failure(replay.fetch('https://pages.test/bytes', { maxBytes: 999 }, signal))).message).toContain('larger than 999 bytes')
})

it('answers what was not recorded with an error, or asks for it, as it was told', async () => {
  const { requests, url } = await serve((_, response) => response.end('live'))
  const path = newFile()
  await (await open({ services: [], cassette: { path, mode: 'record' } })).close()
  const strict = await open({ services: [service(url)], cassette: { path, mode: 'replay' } })
  const error = await failure(strict.service('search', '/a', {}, signal))
  expect(error).toBeInstanceOf(ToolError)
  expect(error.message).toContain('The recorded world has no answer to search GET /a')
  expect(requests).toHaveLength(0)
  const lenient = await open({ services: [service(url)], cassette: { path, mode: 'replay', miss: 'live' } })
  expect((await lenient.service('search', '/a', {}, signal)).bytes.toString()).toBe('live')
  expect(await readFile(path, 'utf8')).toBe('')
})

it('does not take a refused key into the recorded world', async () => {
  const { requests, url } = await serve((_, response) => response.writeHead(requests.length === 1 ? 401 : 200).end())
  const outward = await open({ services: [service(url)], cassette: { path: newFile(), mode: 'record' } })
  const statuses = []
  for (let again = 0; again < 2; again++) statuses.push((await outward.service('search', '/a', {}, signal)).status)
  expect(statuses).toEqual([401, 200])
})
