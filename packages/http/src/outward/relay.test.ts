import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, expect, it } from 'vitest'
import { createOccurrences } from './occurrences.ts'
import { type OpenOutward, openOutward } from './open-outward.ts'
import { relayKey } from './outward-key.ts'
import type { OutwardCassette } from './outward-options.ts'

const directory = await mkdtemp(join(tmpdir(), 'relay-'))
const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})
afterAll(() => rm(directory, { recursive: true }))
const { signal } = new AbortController()
let files = 0
const newFile = () => join(directory, `${files++}.jsonl`)
const site = 'https://pages.test'

/** A world in which a server on loopback answers for https://pages.test, and the requests that reached it. */
async function openSite(answer: (request: IncomingMessage, response: ServerResponse, body: string) => void, cassette?: OutwardCassette) {
  const requests: IncomingMessage[] = []
  const server = createServer(async (request, response) => {
    requests.push(request)
    let body = ''
    for await (const chunk of request) body += chunk
    answer(request, response, body)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  closing.push(async () => {
    server.closeAllConnections()
    server.close()
  })
  const mirror = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { requests, outward: await open({ cassette, mirror }) }
}

async function open({ cassette, mirror }: { readonly cassette?: OutwardCassette | undefined; readonly mirror?: string }) {
  const web = mirror === undefined ? {} : { mirrors: { [site]: mirror } }
  const outward = await openOutward({ services: [], web, cassette })
  closing.push(() => outward.close())
  return outward
}

const requestOf = (method: string, path: string, body?: string, headers: Record<string, string> = {}) => ({
  method,
  url: new URL(`${site}${path}`),
  headers,
  ...(body === undefined ? {} : { body: Buffer.from(body) }),
})
type Sending = ReturnType<typeof requestOf>

/** What the programs of one rollout get, one request after the other. */
async function ask(outward: OpenOutward, ...requests: readonly Sending[]): Promise<string[]> {
  const relay = outward.relay()
  const answers: string[] = []
  for (const request of requests)
    answers.push(
      await relay.send(request, signal).then(
        ({ status, bytes }) => `${status} ${bytes}`,
        (error: Error) => error.message,
      ),
    )
  return answers
}

it('passes a request on with its own headers, and its answer whole, without what belongs to the connection', async () => {
  const { requests, outward } = await openSite(({ method }, response, body) => {
    response.writeHead(302, {
      ...{ location: '/next', 'set-cookie': ['a=1', 'b=2'], 'content-encoding': 'gzip', date: 'then', 'alt-svc': 'h3=":443"' },
      ...{ 'strict-transport-security': 'max-age=1', 'cache-control': 'max-age=60' },
    })
    response.end(gzipSync(`${method} ${body}`))
  })
  const headers = {
    cookie: 's=1',
    authorization: 'Basic eA==',
    range: 'bytes=0-1',
    'if-none-match': '"x"',
    'user-agent': 'own',
    host: 'other',
  }
  const { status, headers: answered } = await outward.relay().send(requestOf('PUT', '/a?b=1', 'text', headers), signal)
  expect(status).toBe(302)
  expect(Object.keys(answered).sort()).toEqual(['cache-control', 'location', 'set-cookie'])
  expect(answered['set-cookie']).toEqual(['a=1', 'b=2'])
  expect(requests).toHaveLength(1)
  expect(requests[0]).toMatchObject({ url: '/a?b=1', method: 'PUT' })
  expect(requests[0]!.headers).toMatchObject({ cookie: 's=1', authorization: 'Basic eA==', 'user-agent': 'own' })
  for (const name of ['range', 'if-none-match']) expect(requests[0]!.headers).not.toHaveProperty(name)
  expect(requests[0]!.headers.host).toMatch(/^127\.0\.0\.1:/)
})

it('replays what each request of a rollout got in its turn, and the last answer for what comes after', async () => {
  const path = newFile()
  let visits = 0
  let isBusy = true
  const { requests, outward } = await openSite(
    ({ method, url, headers }, response, body) => {
      if (method === 'POST' && body.includes('right')) response.setHeader('set-cookie', 's=1')
      if (url === '/busy' && isBusy) {
        isBusy = false
        return response.writeHead(503).end('later')
      }
      response.end(`${method} ${url} ${headers.cookie ?? ''} ${visits++}`)
    },
    { path, mode: 'record' },
  )
  const session = [
    requestOf('GET', '/account'),
    requestOf('POST', '/login', 'word=wrong'),
    requestOf('POST', '/login', 'word=right'),
    requestOf('GET', '/account', undefined, { cookie: 's=1' }),
    requestOf('POST', '/login', 'word=right'),
  ]
  const recorded = await ask(outward, ...session, requestOf('GET', '/busy'), requestOf('GET', '/busy'))
  expect(new Set(recorded).size).toBe(7)
  expect(recorded[5]).toBe('503 later')
  const count = requests.length
  // Another rollout meets the same world.
  expect(await ask(outward, ...session)).toEqual(recorded.slice(0, 5))
  expect(requests).toHaveLength(count)
  await outward.close()
  const replay = await open({ cassette: { path, mode: 'replay' } })
  expect(await ask(replay, ...session)).toEqual(recorded.slice(0, 5))
  expect(await ask(replay, requestOf('GET', '/busy'), requestOf('GET', '/busy'))).toEqual([recorded[6], recorded[6]])
  expect(await ask(replay, ...[1, 2, 3].map(() => requestOf('GET', '/account')))).toEqual([recorded[0], recorded[3], recorded[3]])
  expect((await ask(replay, requestOf('POST', '/login', 'word=third')))[0]).toContain('The recorded world has no answer to relay POST')
  expect(requests).toHaveLength(count)
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
  expect(lines).toHaveLength(6)
  expect(JSON.parse(lines[2]!).headers).toMatchObject({ 'set-cookie': 's=1' })
})

it('replays bytes and a refusal as they were', async () => {
  const path = newFile()
  const bytes = Buffer.from([0xff, 0, 0xfe, 10])
  const { outward } = await openSite((_, response) => response.writeHead(200, { 'content-type': 'image/x' }).end(bytes), {
    path,
    mode: 'record',
  })
  const request = requestOf('GET', '/image')
  const local = { ...request, url: new URL('http://localhost/') }
  await outward.relay().send(request, signal)
  await expect(outward.relay().send(local, signal)).rejects.toMatchObject({ end: 'refused' })
  const replay = await open({ cassette: { path, mode: 'replay' } })
  expect(await replay.relay().send(request, signal)).toEqual({ status: 200, headers: { 'content-type': 'image/x' }, bytes })
  await expect(replay.relay().send(local, signal)).rejects.toMatchObject({
    end: 'refused',
    message: expect.stringContaining('localhost is not on the public web'),
  })
})

it('sends few requests of a rollout at once, so that others find a place', async () => {
  let unanswered: ServerResponse[] = []
  const { requests, outward } = await openSite(({ url }, response) => {
    if (url === '/quick') response.end('quick')
    else unanswered.push(response)
  })
  const slow = outward.relay()
  const pending = Array.from({ length: 30 }, (_, index) => slow.send(requestOf('GET', `/slow/${index}`), signal))
  expect(await ask(outward, requestOf('GET', '/quick'))).toEqual(['200 quick'])
  expect(requests.filter(({ url }) => url !== '/quick').length).toBeLessThanOrEqual(12)
  const answering = setInterval(() => {
    for (const response of unanswered) response.end()
    unanswered = []
  }, 5)
  await Promise.all(pending)
  clearInterval(answering)
  expect(requests).toHaveLength(31)
})

it.each([
  ['ftp://pages.test/', 'Only http and https'],
  ['https://pages.test:22/', 'Port 22 of pages.test cannot be read'],
  ['http://169.254.169.254/latest/meta-data', '169.254.169.254 is not on the public web'],
  ['http://[::ffff:127.0.0.1]/', 'is not on the public web'],
])('refuses %s before anything is sent', async (address, message) => {
  const relay = (await open({})).relay()
  expect(() => relay.check(new URL(address))).toThrow(message)
  await expect(relay.send({ method: 'GET', url: new URL(address), headers: {} }, signal)).rejects.toThrow(message)
})

it('ends with what the other side did', async () => {
  const { outward } = await openSite(({ url }, response) => {
    if (url === '/large') response.end(Buffer.alloc(10_000_001))
    else response.writeHead(200, { 'content-length': '100' }).write('part', () => response.destroy())
  })
  const [large, cut] = await ask(outward, requestOf('GET', '/large'), requestOf('GET', '/cut'))
  expect(large).toContain('is larger than 10000000 bytes')
  expect(cut).toContain('The connection to https://pages.test/cut failed')
})

it('a form with files has one key, whatever its boundary is', () => {
  const form = (boundary: string) =>
    requestOf('POST', '/', `--${boundary}\r\nx\r\n--${boundary}--`, { 'content-type': `multipart/form-data; boundary=${boundary}` })
  expect(relayKey(form('----WebKitA1'))).toBe(relayKey(form('----WebKitB2')))
})

it('gives the least number that is free', () => {
  const occurrences = createOccurrences()
  expect([1, 2, 3].map(() => occurrences.take('a'))).toEqual([0, 1, 2])
  occurrences.giveBack('a', 2)
  occurrences.giveBack('a', 0)
  expect([occurrences.take('b'), ...[1, 2, 3].map(() => occurrences.take('a'))]).toEqual([0, 0, 2, 3])
})
