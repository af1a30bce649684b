import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
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

const limits = { maxSockets: 10, maxHeaderBytes: 4_096, headersTimeoutMs: 1_000, requestTimeoutMs: 1_000, keepAliveTimeoutMs: 1_000 }
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
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
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
  leaving.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n01')
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
