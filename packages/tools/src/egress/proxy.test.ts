import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttpServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { openOutward } from '@aworld-train/http'
import { afterEach, expect, it, onTestFinished, vi } from 'vitest'
import { selfSigned } from '../testing/self-signed.ts'
import { createAuthority } from './authority.ts'
import { EgressProxy, maxConnections, type ProxyOptions } from './proxy.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})
const authority = await createAuthority()
const site = 'https://pages.test'

async function listen(server: ReturnType<typeof createServer>): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  closing.push(() => server.close())
  return (server.address() as AddressInfo).port
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** A proxy in a world in which a server on loopback answers for https://pages.test. */
async function openProxy(answer: Answer, options: Partial<ProxyOptions> = {}, tls?: { readonly key: string; readonly cert: string }) {
  const server = tls ? createHttpsServer(tls, answer) : createHttpServer(answer)
  const upstream = await listen(server)
  closing.push(() => server.closeAllConnections())
  const mirrors = { [site]: `${tls ? 'https' : 'http'}://127.0.0.1:${upstream}`, 'http://pages.test': `http://127.0.0.1:${upstream}` }
  const outward = await openOutward({ services: [], web: { mirrors } })
  closing.push(() => outward.close())
  const counts = { requests: 0, refused: 0, webSockets: 0 }
  const proxy = new EgressProxy({ authority, relay: outward.relay(), credentials: null, counts, ...options })
  const open = new Set<Socket>()
  const port = await listen(createServer((connection) => proxy.serve(connection)).on('connection', (connection) => open.add(connection)))
  closing.push(() => {
    for (const connection of open) connection.destroy()
  })
  return { port, counts }
}

/** Everything that comes back on a connection until it ends. */
async function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.on('error', () => {})
  await once(socket, 'close')
  return Buffer.concat(chunks).toString()
}

/** What the proxy answers to bytes, until it ends the connection. */
function send(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const all = readAll(socket)
  socket.write(text)
  return all
}

/** A tunnel through the proxy, or the status of its refusal. */
async function tunnel(port: number, target: string, headers: Record<string, string> = {}): Promise<Socket | number> {
  const request = httpRequest({ host: '127.0.0.1', port, method: 'CONNECT', path: target, headers, agent: false }).end()
  const [response, socket] = (await once(request, 'connect')) as [IncomingMessage, Socket]
  if (response.statusCode === 200) return socket
  socket.destroy()
  return response.statusCode!
}

async function tls(port: number, host = 'pages.test', headers: Record<string, string> = {}): Promise<TLSSocket> {
  const socket = (await tunnel(port, `${host}:443`, headers)) as Socket
  const secure = connectTls({ socket, servername: host, ca: authority.certificate })
  await once(secure, 'secureConnect')
  return secure
}

async function ask(port: number, path: string, headers: Record<string, string> = {}, method = 'GET', body = '') {
  const socket = await tls(port)
  const request = httpRequest({ createConnection: () => socket, method, path, headers: { host: 'pages.test', ...headers } }).end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += chunk
  socket.destroy()
  return { status: response.statusCode, headers: response.headers, text }
}

it('ends TLS with a certificate for the host that its authority vouches for, and whose key is the one it names', async () => {
  const { port, counts } = await openProxy(({ method, url }, response) => response.setHeader('x-own', 'yes').end(`${method} ${url}`))
  const socket = await tls(port)
  const { subjectAltName, publicKey } = socket.getPeerX509Certificate()!
  expect([socket.authorized, subjectAltName]).toEqual([true, 'DNS:pages.test'])
  expect(
    createHash('sha256')
      .update(publicKey.export({ type: 'spki', format: 'der' }))
      .digest('base64'),
  ).toBe(authority.spki)
  socket.destroy()
  expect(await ask(port, '/a?b=1')).toMatchObject({ status: 200, text: 'GET /a?b=1', headers: { 'x-own': 'yes' } })
  expect(await ask(port, '/form', {}, 'POST', 'x=1')).toMatchObject({ status: 200, text: 'POST /form' })
  expect(await ask(port, '//127.0.0.1/x')).toMatchObject({ status: 200, text: 'GET //127.0.0.1/x' })
  expect(counts).toEqual({ requests: 3, refused: 0, webSockets: 0 })
})

it('answers a request with a whole address, and one in a tunnel without TLS', async () => {
  const { port } = await openProxy(({ url }, response) => response.end(`for ${url}`))
  expect(await send(port, 'GET http://pages.test/plain HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')).toMatch(
    /^HTTP\/1\.1 200 .*for \/plain$/s,
  )
  const socket = (await tunnel(port, 'pages.test:80')) as Socket
  const answer = readAll(socket)
  socket.write('GET /in HTTP/1.1\r\nhost: elsewhere.test\r\nconnection: close\r\n\r\n')
  expect(await answer).toMatch(/for \/in$/)
})

it('lets only those with the password pass, for every request and every tunnel', async () => {
  const credentials = { username: 'browser', password: 'a-secret' }
  const { port, counts } = await openProxy((_, response) => response.end('in'), { credentials })
  const authorization = (text: string) => ({ 'proxy-authorization': `Basic ${Buffer.from(text).toString('base64')}` })
  const plain = await send(port, 'GET http://pages.test/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  expect(plain).toMatch(/^HTTP\/1\.1 407 .*proxy-authenticate: Basic/is)
  expect(plain).toContain('The programs of this workspace have no network')
  expect(await tunnel(port, 'pages.test:443')).toBe(407)
  expect(await tunnel(port, 'pages.test:443', authorization('browser:a-secre'))).toBe(407)
  const socket = await tls(port, 'pages.test', authorization('browser:a-secret'))
  const answer = readAll(socket)
  socket.write('GET / HTTP/1.1\r\nhost: pages.test\r\nconnection: close\r\n\r\n')
  expect(await answer).toMatch(/in$/)
  expect(counts).toMatchObject({ requests: 1, refused: 3 })
})

it.each([
  ['127.0.0.1:443', 403],
  ['[::1]:443', 403],
  ['[::ffff:169.254.169.254]:80', 403],
  ['0x7f.1:443', 403],
  ['169.254.169.254:80', 403],
  ['pages.test:22', 403],
  ['pages.test', 400],
  ['user@pages.test:443', 400],
  ['pages.test:443/../', 400],
])('opens no tunnel to %s', async (target, status) => {
  const { port, counts } = await openProxy((_, response) => response.end('in'))
  expect(await tunnel(port, target)).toBe(status)
  expect(counts).toEqual({ requests: 0, refused: 1, webSockets: 0 })
})

it('refuses names that lead to this machine with the reason, in a tunnel and outside of one', async () => {
  const { port, counts } = await openProxy((_, response) => response.end('in'))
  const plain = await send(port, 'GET http://localhost/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  expect(plain).toMatch(/^HTTP\/1\.1 403 .*localhost is not on the public web/s)
  const socket = await tls(port, 'localhost')
  const answer = readAll(socket)
  socket.write('GET / HTTP/1.1\r\nhost: pages.test\r\nconnection: close\r\n\r\n')
  expect(await answer).toMatch(/^HTTP\/1\.1 403 .*localhost is not on the public web/s)
  expect(counts.refused).toBe(2)
})

it.each([
  ['garbage', '\x05\x01\x00garbage\r\n\r\n', 400],
  ['a request to the proxy itself', 'GET / HTTP/1.1\r\nhost: 127.0.0.1:3128\r\nconnection: close\r\n\r\n', 400],
  ['another scheme', 'GET ftp://pages.test/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n', 400],
  ['a method of its own', 'PROPFIND http://pages.test/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n', 501],
  ['headers without end', `GET http://pages.test/ HTTP/1.1\r\nx: ${'a'.repeat(70_000)}`, 400],
  ['a body that is too large', 'POST http://pages.test/ HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n', 413],
])('answers %s with what is wrong, and ends', async (_, text, status) => {
  const { port } = await openProxy((_, response) => response.end('in'))
  expect(await send(port, text)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
})

it('answers garbage in a tunnel by its end', async () => {
  const { port, counts } = await openProxy((_, response) => response.end('in'))
  for (const bytes of ['SSH-2.0-OpenSSH_9\r\n', '\x16\x03\x01garbage garbage garbage']) {
    const socket = (await tunnel(port, 'pages.test:443')) as Socket
    const all = readAll(socket)
    socket.write(bytes)
    await all
  }
  expect(counts.requests).toBe(0)
})

it('refuses and counts WebSockets', async () => {
  const { port, counts } = await openProxy((_, response) => response.end('in'))
  const headers = { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-key': 'x', 'sec-websocket-version': '13' }
  expect(await ask(port, '/chat', headers)).toMatchObject({ status: 403, text: expect.stringContaining('WebSockets are not passed on') })
  expect(counts).toEqual({ requests: 0, refused: 1, webSockets: 1 })
})

it('tells how the other side failed', async () => {
  const { port } = await openProxy(({ url }, response) => {
    if (url === '/large') response.end(Buffer.alloc(10_000_001))
    else if (url === '/cut') response.writeHead(200, { 'content-length': '100' }).write('part', () => response.destroy())
    else if (url === '/odd') response.writeHead(200, { 'content-encoding': 'zstd' }).end('x')
    else response.destroy()
  })
  const texts = []
  for (const path of ['/large', '/cut', '/odd', '/gone']) texts.push(await ask(port, path))
  expect(texts.map(({ status, text }) => `${status} ${text.trim()}`)).toEqual([
    '502 The answer of https://pages.test/large is larger than 10000000 bytes, the most that is taken.',
    expect.stringMatching(/^502 The connection to https:\/\/pages\.test\/cut failed/),
    expect.stringMatching(/^502 The answer of https:\/\/pages\.test\/odd is packed as "zstd"/),
    expect.stringMatching(/^502 The connection to https:\/\/pages\.test\/gone failed/),
  ])
})

it('passes nothing on from a host whose certificate is not valid', async () => {
  const { port } = await openProxy((_, response) => response.end('in'), {}, await selfSigned())
  expect(await ask(port, '/')).toMatchObject({
    status: 502,
    text: expect.stringMatching(/The certificate of https:\/\/pages\.test\/ is not valid/),
  })
})

it('keeps a bounded number of connections, and takes others when those have ended', async () => {
  const { port } = await openProxy((_, response) => response.end('in'))
  const sockets = Array.from({ length: 1_000 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  let refused = 0
  await new Promise<void>((resolve) => {
    for (const socket of sockets)
      socket.once('data', (chunk) => {
        expect(String(chunk)).toMatch(/^HTTP\/1\.1 503 /)
        if (++refused === sockets.length - maxConnections) resolve()
      })
  })
  const ends = sockets.map((socket) => (socket.destroyed ? null : once(socket, 'close')))
  for (const socket of sockets) socket.resume()
  for (const socket of sockets) socket.end()
  await Promise.all(ends)
  expect(await ask(port, '/')).toMatchObject({ status: 200 })
})

it('keeps few answers for clients that do not read, and ends their connections', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  let requests = 0
  const { port } = await openProxy((_, response) => {
    requests++
    response.end(Buffer.alloc(10_000_000))
  })
  let begun = 0
  for (let index = 0; index < 30; index++) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    onTestFinished(() => void socket.destroy())
    socket.write('GET http://pages.test/ HTTP/1.1\r\nhost: x\r\n\r\n')
    socket.once('data', () => {
      begun++
      socket.pause()
    })
  }
  for (const round of [12, 24, 30]) {
    await expect.poll(() => begun, { timeout: 60_000 }).toBe(round)
    for (let index = 0; index < 10; index++) expect(await send(port, 'garbage\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
    expect(requests).toBe(round)
    vi.advanceTimersByTime(20_000)
  }
  expect(await send(port, 'GET http://pages.test/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
})

it('reads no body before there is a place for it', async () => {
  const bodies: string[] = []
  const answers: ServerResponse[] = []
  const { port } = await openProxy(({ url }, response) => {
    bodies.push(url!)
    answers.push(response)
  })
  const post = (path: string, body: string) => {
    const head = `POST http://pages.test/${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\nconnection: close\r\n\r\n`
    const socket = connect(port, '127.0.0.1')
    socket.write(`${head}${body}`)
    return socket
  }
  // Bodies without end take all places.
  const slow = Array.from({ length: 12 }, (_, index) => post(`slow/${index}`, 'x'))
  for (let index = 0; index < 10; index++) await send(port, 'garbage\r\n\r\n')
  const next = post('next', 'text')
  for (let index = 0; index < 10; index++) await send(port, 'garbage\r\n\r\n')
  expect(bodies).toEqual([])
  // A client that leaves while it waits takes no place with it.
  const gone = post('gone', 'text')
  const last = post('last', 'text')
  gone.destroy()
  for (const socket of slow) socket.destroy()
  await expect.poll(() => bodies.filter((path) => path !== '/gone').sort()).toEqual(['/last', '/next'])
  for (const answer of answers) answer.end('in')
  expect(await readAll(next)).toMatch(/in$/)
  expect(await readAll(last)).toMatch(/in$/)
})

it('answers requests of one connection in turn, and ends one that sends many at once', async () => {
  let requests = 0
  const { port } = await openProxy(({ url }, response) => {
    requests++
    if (url !== '/never') response.end(`for ${url}`)
  })
  const get = (path: string, more = '') => `GET http://pages.test/${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`
  const both = await send(port, get('one') + get('two', 'connection: close\r\n'))
  expect(both.match(/for \/(one|two)/g)).toEqual(['for /one', 'for /two'])
  // The end may come as a reset.
  await send(port, get('never').repeat(10_000)).catch(() => {})
  expect(requests).toBeLessThanOrEqual(3)
})
