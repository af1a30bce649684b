import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { type HttpLimits, type OpenHttpServer, openHttpServer, type SocketRefusal } from './open-http-server.ts'
import { discardBody, readBody } from './read-body.ts'

type Handle = (request: IncomingMessage, response: ServerResponse) => void

const servers: OpenHttpServer[] = []
const sockets: Socket[] = []

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of servers.splice(0)) {
    void server.close()
    server.server.closeAllConnections()
  }
})

interface Served extends OpenHttpServer {
  readonly refusals: SocketRefusal[]
}

async function serve(handle: Handle, limits: Partial<HttpLimits> = {}): Promise<Served> {
  const refusals: SocketRefusal[] = []
  const server = await openHttpServer({
    what: 'It',
    host: '127.0.0.1',
    port: 0,
    portError: 'GATEWAY_PORT_IN_USE',
    limits: {
      maxSockets: 100,
      maxHeaderBytes: 4_096,
      headersTimeoutMs: 60_000,
      requestTimeoutMs: 60_000,
      keepAliveTimeoutMs: 60_000,
      ...limits,
    },
    handle,
    onRefusal: (refusal) => refusals.push(refusal),
  })
  servers.push(server)
  return Object.assign(server, { refusals })
}

interface Talk {
  readonly socket: Socket
  received(): string
  readonly closed: Promise<unknown>
}

function talk({ url }: OpenHttpServer): Talk {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  sockets.push(socket)
  let received = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text
  })
  socket.on('error', () => {})
  return { socket, received: () => received, closed: once(socket, 'close').catch(() => {}) }
}

const post = (body: string, ...fields: string[]) =>
  ['POST /path HTTP/1.1', 'host: localhost', `content-length: ${Buffer.byteLength(body)}`, ...fields, '', body].join('\r\n')

/** Answers with the body that it received, with a length or in chunks as the body asks for. */
function echo(request: IncomingMessage, response: ServerResponse): void {
  readBody(request, response, 100_000).then(
    (body) => {
      const text = `${request.method} ${request.url} ${JSON.stringify(request.headers)} ${body.toString('latin1')}`
      if (body[0] === 33) {
        response.writeHead(201, { 'content-type': 'text/plain' })
        response.write('')
        for (const part of text.match(/.{1,50}/gs) ?? []) response.write(part)
        response.end()
      } else {
        response.writeHead(200, { 'content-type': 'text/plain', 'content-length': Buffer.byteLength(text) })
        response.end(text)
      }
    },
    () => response.destroy(),
  )
}

/** Statuses and bodies of the received answers, chunks put together. */
function answersIn(received: string): string[] {
  const answers: string[] = []
  let rest = received
  for (;;) {
    const head = /^HTTP\/1\.1 (\d{3})[^\r]*\r\n([\s\S]*?)\r\n\r\n/.exec(rest)
    if (!head) return rest === '' ? answers : [...answers, `left: ${rest}`]
    rest = rest.slice(head[0].length)
    const length = /content-length: (\d+)/i.exec(head[2]!)?.[1]
    let body = ''
    if (length !== undefined) {
      body = rest.slice(0, Number(length))
      rest = rest.slice(Number(length))
    } else {
      for (;;) {
        const chunk = /^([0-9a-f]+)\r\n/i.exec(rest)
        const size = Number.parseInt(chunk?.[1] ?? '0', 16)
        const from = chunk?.[0].length ?? 0
        body += rest.slice(from, from + size)
        rest = rest.slice(from + size + 2)
        if (size === 0) break
      }
    }
    answers.push(`${head[1]} ${body}`)
  }
}

test('a body that is asked for later waits, and holds its client back', async () => {
  const bodyRequest = Promise.withResolvers<void>()
  const server = await serve(async (request, response) => {
    await bodyRequest.promise
    const body = await readBody(request, response, 100_000_000)
    response.end(String(body.length))
  })
  const { socket, received } = talk(server)
  const length = 50_000_000
  socket.write(`POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n\r\n`)
  socket.write(Buffer.alloc(length))
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(socket.writableLength).toBeGreaterThan(0)
  bodyRequest.resolve()
  await expect.poll(() => answersIn(received())).toEqual([`200 ${length}`])
})

test('a request that is answered before its body is there leaves its connection usable', async () => {
  const server = await serve((request, response) => {
    if (request.headers['x-refuse'] === undefined) return echo(request, response)
    response.end('no')
    discardBody(request)
  })
  const { socket, received } = talk(server)
  socket.write('POST / HTTP/1.1\r\nhost: localhost\r\nx-refuse: 1\r\ncontent-length: 10\r\n\r\n01234')
  await expect.poll(() => answersIn(received())).toEqual(['200 no'])
  socket.write(`56789${post('a')}`)
  await expect.poll(() => answersIn(received()).length).toBe(2)
  expect(answersIn(received())[1]).toMatch(/ a$/)
})

test('a body that nobody reads is thrown away when the request is answered', async () => {
  const server = await serve((_request, response) => response.end('healthy'))
  const { socket, received } = talk(server)
  const length = 3_000_000
  socket.write(`POST /health HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n\r\n`)
  socket.write(Buffer.alloc(length))
  await expect.poll(() => socket.writableLength).toBe(0)
  socket.write(post('a'))
  await expect.poll(() => answersIn(received())).toEqual(['200 healthy', '200 healthy'])
})

test('what comes behind a request that closes its connection is not served', async () => {
  let served = 0
  const server = await serve((request, response) => {
    served++
    echo(request, response)
  })
  const { socket, received, closed } = talk(server)
  socket.write(post('a', 'connection: close'))
  await expect.poll(() => answersIn(received()).length).toBe(1)
  socket.write(post('b'))
  socket.end()
  await closed
  expect(served).toBe(1)
})

test('an answer that is over cannot end the connection of the next', async () => {
  const responses: ServerResponse[] = []
  const server = await serve((request, response) => {
    responses.push(response)
    echo(request, response)
  })
  const { socket, received } = talk(server)
  socket.write(post('a'))
  await expect.poll(() => answersIn(received()).length).toBe(1)
  responses[0]!.destroy()
  socket.write(post('b'))
  await expect.poll(() => answersIn(received()).length).toBe(2)
})

test('an answer that its client resets in the middle is not one that was handed over', async () => {
  const finished: boolean[] = []
  const server = await serve(async (request, response) => {
    await readBody(request, response, 10)
    response.once('close', () => finished.push(response.writableFinished))
    response.end('x'.repeat(20_000_000))
  })
  const { socket } = talk(server)
  socket.pause()
  socket.write(post('a'))
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(finished).toEqual([])
  socket.resetAndDestroy()
  await expect.poll(() => finished).toEqual([false])
})

test('who was refused cannot hold the connection by sending on', async () => {
  const server = await serve(echo, { headersTimeoutMs: 100, requestTimeoutMs: 100 })
  const { socket, received, closed } = talk(server)
  socket.write('POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n')
  const drip = setInterval(() => socket.write('a'), 100)
  await closed
  clearInterval(drip)
  expect(received()).toMatch(/^HTTP\/1.1 408 /)
})

test('a body above the limit is refused by what it says', async () => {
  const reasons: string[] = []
  const server = await serve((request, response) => {
    readBody(request, response, 10).catch((error) => {
      reasons.push(error.reason)
      response.end('too large')
    })
  })
  const { socket, received } = talk(server)
  socket.write(post('0123456789a'))
  await expect.poll(() => answersIn(received())).toEqual(['200 too large'])
  expect(reasons).toEqual(['too-large'])
})

test('a client that does not read holds the answer back, and gets all of it', async () => {
  const piece = 'x'.repeat(100_000)
  const pieces = 200
  let waited = 0
  let finished: boolean | null = null
  const server = await serve(async (request, response) => {
    await readBody(request, response, 10)
    response.once('close', () => {
      finished = response.writableFinished
    })
    response.writeHead(200, { 'content-type': 'text/plain' })
    for (let index = 0; index < pieces; index++) {
      if (!response.write(piece)) {
        waited++
        await new Promise<void>((resolve) => response.once('drain', resolve))
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    response.end()
  })
  const { socket, received } = talk(server)
  socket.pause()
  socket.write(post('a'))
  await expect.poll(() => waited).toBeGreaterThan(0)
  expect(finished).toBeNull()
  socket.resume()
  await expect.poll(() => finished).toBe(true)
  await expect.poll(() => answersIn(received())[0]?.length).toBe(4 + pieces * piece.length)
})

for (const leave of ['end', 'destroy'] as const)
  test(`a client that leaves while it waits is heard (${leave})`, async () => {
    const ended: boolean[] = []
    const server = await serve((request, response) => {
      void readBody(request, response, 10).then(() => response.once('close', () => ended.push(response.writableFinished)))
    })
    const { socket } = talk(server)
    socket.write(post('a'))
    await new Promise((resolve) => setTimeout(resolve, 50))
    socket[leave]()
    await expect.poll(() => ended).toEqual([false])
    await expect.poll(server.sockets).toBe(0)
  })

test('what waits too long is closed: a connection without a request, half a body, an idle one', async () => {
  const limits = { headersTimeoutMs: 3_000, requestTimeoutMs: 3_000, keepAliveTimeoutMs: 500 }
  const server = await serve(echo, limits)
  const [silent, half, idle] = [talk(server), talk(server), talk(server)]
  half.socket.write('POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n0')
  idle.socket.write(post('a'))
  for (const each of [silent, half, idle]) each.socket.on('end', () => each.socket.end())
  await Promise.all([silent.closed, half.closed, idle.closed])
  expect([silent, half, idle].map(({ received }) => received().slice(9, 12))).toEqual(['408', '408', '200'])
  expect(server.refusals).toEqual(['timeout', 'timeout'])
})

test('a closed server ends idle connections at once, and the others behind their answers', async () => {
  const responses: ServerResponse[] = []
  const server = await serve(
    (request, response) => {
      if (request.url === '/path') echo(request, response)
      else void readBody(request, response, 10).then(() => responses.push(response))
    },
    { keepAliveTimeoutMs: 60_000 },
  )
  const [idle, busy] = [talk(server), talk(server)]
  for (const each of [idle, busy]) each.socket.on('end', () => each.socket.end())
  idle.socket.write(post('a'))
  await expect.poll(() => answersIn(idle.received()).length).toBe(1)
  busy.socket.write(post('a').replace('/path', '/held'))
  await expect.poll(() => responses.length).toBe(1)
  const closed = server.close()
  await idle.closed
  expect(busy.received()).toBe('')
  responses[0]!.end('late')
  await Promise.all([busy.closed, closed])
  expect(answersIn(busy.received())).toEqual(['200 late'])
})

test('a header that would end its line is refused before anything is sent', async () => {
  const thrown: unknown[] = []
  const server = await serve((request, response) => {
    void readBody(request, response, 10).then(() => {
      try {
        response.writeHead(200, { 'x-a': 'b\r\nx-c: d' })
      } catch (error) {
        thrown.push(error)
        response.end('safe')
      }
    })
  })
  const { socket, received } = talk(server)
  socket.write(post('a'))
  await expect.poll(() => answersIn(received())).toEqual(['200 safe'])
  expect(thrown).toEqual([expect.any(TypeError)])
})
