import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import { createBearerCheck } from './bearer.ts'
import { checkExposure, isLoopback } from './exposure.ts'
import { openHttpServer } from './open-http-server.ts'
import { readBody } from './read-body.ts'

test('loopback is what only this machine reaches', () => {
  for (const host of ['localhost', 'LOCALHOST', '127.0.0.1', '127.3.2.1', '::1', '[::1]'])
    expect([host, isLoopback(host)]).toEqual([host, true])
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'example.com', '127.0.0.1.example.com', '127.0.0.256', '', '::ffff:10.0.0.1'])
    expect([host, isLoopback(host)]).toEqual([host, false])
})

test('beyond loopback there is encryption, or the word of the user', () => {
  const exposure = { what: 'The gateway', host: '0.0.0.0', tls: false, insecure: false }
  expect(() => checkExposure(exposure)).toThrow(
    expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringMatching(/^The gateway would answer on 0.0.0.0/) }),
  )
  for (const changes of [{ tls: true }, { insecure: true }, { host: '127.0.0.1' }]) checkExposure({ ...exposure, ...changes })
})

test('a bearer token is the whole token, in the one scheme', () => {
  const check = createBearerCheck('a-secret')
  for (const good of ['Bearer a-secret', 'bearer a-secret', 'Bearer  a-secret ']) expect([good, check(good)]).toEqual([good, true])
  for (const bad of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'a-secret',
    'Bearer a-secre',
    'Bearer a-secret1',
    'Basic a-secret',
    'Bearer A-SECRET',
  ])
    expect([bad, check(bad)]).toEqual([bad, false])
  expect(createBearerCheck('')('Bearer ')).toBe(false)
})

const limits = { maxSockets: 10, maxHeaderBytes: 4_096, headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000 }
const portError = 'GATEWAY_PORT_IN_USE'

test('a server that cannot be had says why', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const options = {
    what: 'It',
    host: '127.0.0.1',
    port: (taken.address() as AddressInfo).port,
    limits,
    portError,
    handle: () => {},
  } as const
  await expect(openHttpServer(options)).rejects.toMatchObject({
    code: portError,
    message: expect.stringMatching(/is in use; choose another port/),
  })
  await expect(openHttpServer({ ...options, tls: { cert: 'no PEM', key: 'no PEM' } })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(/^It cannot use its certificate/),
  })
  taken.close()
})

test('an error behind an answer that has begun closes the socket, and puts nothing into the answer', async () => {
  const { server, url, sockets } = await openHttpServer({
    what: 'It',
    host: '127.0.0.1',
    port: 0,
    limits,
    portError,
    handle(_request, response) {
      response.writeHead(200, { 'content-length': 100 })
      response.write('the beginning')
    },
  })
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk
    if (received.endsWith('beginning')) socket.write('\0 no request\r\n\r\n')
  })
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await once(socket, 'close')
  expect(received.endsWith('the beginning')).toBe(true)
  await expect.poll(sockets).toBe(0)
  server.close()
})

test('the whole body is read; of one that is too large, or that its client leaves, only the reason', async () => {
  const outcomes: string[] = []
  let arrived = 0
  const { server, url } = await openHttpServer({
    what: 'It',
    host: '127.0.0.1',
    port: 0,
    limits,
    portError,
    handle(request, response) {
      arrived++
      readBody(request, response, 10)
        .then(
          (body) => outcomes.push(body.toString()),
          (error) => outcomes.push(`${error.reason}: ${error.message}`),
        )
        .finally(() => response.end())
    },
  })
  for (const body of ['0123456789', '0123456789a', '']) await fetch(url, { method: 'POST', body })
  const leaving = connect(Number(new URL(url).port), '127.0.0.1')
  leaving.write('POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n01')
  await expect.poll(() => arrived).toBe(4)
  leaving.destroy()
  await expect
    .poll(() => outcomes)
    .toEqual([
      '0123456789',
      'too-large: The body is larger than 10 bytes',
      '',
      'incomplete: The connection closed before the whole body had come',
    ])
  server.close()
})

test('on loopback a server answers for the names of loopback and for those it was given, and refuses others before any handler', async () => {
  const refusals: string[] = []
  const seen: (string | undefined)[] = []
  const options = {
    what: 'It',
    port: 0,
    limits,
    portError,
    allowedHosts: ['Gateway.Example'],
    handle(request: IncomingMessage, response: ServerResponse) {
      seen.push(request.headers.host)
      response.end('served')
    },
    upgrade: (_request: IncomingMessage, socket: Duplex) => void socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
    onRefusal: (refusal: string) => refusals.push(refusal),
  } as const
  const ask = async (url: string, head: string) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.end(`${head}\r\n\r\n`)
    return Buffer.concat(await socket.toArray()).toString()
  }
  const { close, url } = await openHttpServer({ ...options, host: '127.0.0.1' })
  const good = ['localhost', 'LocalHost.:80', '127.0.0.1', '127.9.9.9:1', '[::1]:5', 'a.localhost:', 'gateway.example:443']
  for (const host of good)
    expect([host, await ask(url, `GET / HTTP/1.1\r\nhost: ${host}`)]).toEqual([host, expect.stringContaining('served')])
  expect(await ask(url, 'GET / HTTP/1.0')).toContain('served')
  expect(await ask(url, 'GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: x')).toContain('101')
  seen.length = 0
  const bad = [
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'x@localhost',
    'localhost:80:80',
    '10.0.0.1',
    '',
    'evil"',
  ]
  for (const host of bad)
    for (const more of ['', '\r\nconnection: upgrade\r\nupgrade: websocket']) {
      const answer = await ask(url, `POST / HTTP/1.1\r\nhost: ${host}${more}\r\ncontent-length: 0`)
      expect([host, answer]).toEqual([
        host,
        expect.stringMatching(/^HTTP\/1.1 421 Misdirected Request.*"HOST_REFUSED".*add the name to allowedHosts/s),
      ])
      expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)).error.message).toContain(JSON.stringify(host))
    }
  expect([seen, new Set(refusals), refusals.length]).toEqual([[], new Set(['wrong-host']), 2 * bad.length])
  await close()
  const open = await openHttpServer({ ...options, host: '0.0.0.0', insecure: true })
  expect(await ask(open.url, 'GET / HTTP/1.1\r\nhost: evil.example')).toContain('served')
  await open.close()
})
