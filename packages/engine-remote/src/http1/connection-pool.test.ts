import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { ConnectionPool, type ConnectionPoolOptions, type PoolCall } from './connection-pool.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function openPool(url: string, options: Partial<ConnectionPoolOptions> = {}): ConnectionPool {
  const pool = new ConnectionPool({ url, connectTimeoutMs: 1000, keepAliveMs: 5000, ...options })
  closers.push(() => pool.close(new Error('the test is over')))
  return pool
}

async function serveHttp(listener: RequestListener): Promise<string> {
  const server = createHttpServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A server that is told what to do with each socket. */
async function serveSockets(each: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    each(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const headers = ['content-type', 'application/json']

interface Answer {
  readonly status: number
  readonly body: Buffer
  readonly pieces: number
}

function post(
  pool: ConnectionPool,
  body: readonly Uint8Array[] = [Buffer.from('{}')],
  fresh = false,
): Promise<Answer> & { call: PoolCall } {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const pieces: Buffer[] = []
  let status = 0
  const call = pool.post(
    { path: '/x', headers, body, fresh },
    {
      onStart() {},
      onHead: (head) => {
        status = head.status
      },
      onData: (piece) => {
        pieces.push(Buffer.from(piece))
        return true
      },
      onEnd: () => resolve({ status, body: Buffer.concat(pieces), pieces: pieces.length }),
      onError: (error, reused) => reject(Object.assign(error, { reused })),
    },
  )
  return Object.assign(promise, { call })
}

const echo: RequestListener = async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  response.end(Buffer.concat(chunks))
}

describe('calls', () => {
  test.each([0, 10, 20_000, 3_000_000])('of %i bytes arrive whole, in whatever pieces they were given', async (length) => {
    const pool = openPool(await serveHttp(echo))
    const bytes = Buffer.from(Array.from({ length }, (_, index) => (index * 7) % 251))
    const third = Math.floor(length / 3)
    const answers = await Promise.all([
      post(pool, [bytes]),
      post(pool, [bytes.subarray(0, third), bytes.subarray(third, third), bytes.subarray(third)]),
    ])
    for (const { status, body } of answers) {
      expect(status).toBe(200)
      expect(body.equals(bytes)).toBe(true)
    }
  })

  test('use a connection again, and as many as there are calls at once', async () => {
    const ports = new Set<number>()
    const pool = openPool(
      await serveHttp((request, response) => {
        ports.add(request.socket.remotePort!)
        setTimeout(() => response.end('fine'), 20)
      }),
    )
    await Promise.all(Array.from({ length: 5 }, () => post(pool)))
    for (let call = 0; call < 5; call++) await post(pool)
    expect([ports.size, pool.size]).toEqual([5, 5])
    await post(pool, undefined, true)
    expect(pool.size).toBe(6)
  })

  test('to a name go out with it as the host, without the path of the address', async () => {
    const url = await serveHttp((request, response) => response.end(`${request.headers.host} ${request.url}`))
    const { port } = new URL(url)
    const { body } = await post(openPool(`http://localhost:${port}/deep/path`))
    expect(body.toString()).toBe(`localhost:${port} /x`)
  })

  test('are heard no more once they are aborted, and their connection is closed', async () => {
    const closed = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const pool = openPool(
      await serveHttp((request, response) => {
        response.write('a part')
        begun.resolve()
        request.socket.on('close', () => closed.resolve())
      }),
    )
    const answer = post(pool)
    let settled = false
    answer.then(
      () => (settled = true),
      () => (settled = true),
    )
    await begun.promise
    answer.call.abort()
    await closed.promise
    await sleep(20)
    expect([settled, pool.size]).toEqual([false, 0])
  })

  test('that are aborted before there is a connection leave none', async () => {
    const pool = openPool(await serveHttp(echo))
    post(pool).call.abort()
    await expect.poll(() => pool.size).toBe(0)
    expect((await post(pool)).status).toBe(200)
  })

  test('that are not read hold the server back until they are', async () => {
    let written = 0
    const pool = openPool(
      await serveHttp((_request, response) => {
        const piece = Buffer.alloc(256 * 1024)
        const more = () => {
          while (written < 200) {
            written++
            if (!response.write(piece)) {
              response.once('drain', more)
              return
            }
          }
          response.end()
        }
        more()
      }),
    )
    const ended = Promise.withResolvers<number>()
    let bytes = 0
    let reads = false
    const call = pool.post(
      { path: '/x', headers, body: [] },
      {
        onStart() {},
        onHead() {},
        onData(piece) {
          bytes += piece.length
          return reads
        },
        onEnd: () => ended.resolve(bytes),
        onError: ended.reject,
      },
    )
    await expect.poll(() => bytes).toBeGreaterThan(0)
    await sleep(100)
    // What the system holds in between is far from all of it.
    expect(bytes).toBeLessThan(128 * 1024)
    expect(written).toBeLessThan(100)
    reads = true
    call.resume()
    expect(await ended.promise).toBe(200 * 256 * 1024)
  })
})

describe('a server that', () => {
  test('is not there is an error of its own, with the address', async () => {
    const url = await serveHttp(echo)
    for (const close of closers.splice(0)) await close()
    await expect(post(openPool(url))).rejects.toMatchObject({ code: 'ECONNREFUSED', reused: false })
    const name = url.replace('127.0.0.1', 'localhost')
    await expect(post(openPool(name))).rejects.toThrow(/ECONNREFUSED/)
  })

  test('does not take the connection is given up', async () => {
    // A listener whose queue is full takes no more connections; one that is paused at TLS never greets.
    const url = await serveSockets(() => {})
    const pool = openPool(url.replace('http:', 'https:'), { connectTimeoutMs: 100 })
    await expect(post(pool)).rejects.toThrow('no connection within 100 ms')
  })

  test.each([
    ['closes without a byte', (socket: Socket) => socket.end(), 'other side closed'],
    ['resets', (socket: Socket) => socket.resetAndDestroy(), 'ECONNRESET'],
    ['answers garbage', (socket: Socket) => socket.end('garbage'), 'not HTTP/1.1'],
    ['answers half', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf'), 'other side closed'],
  ])('%s fails its call', async (_, answer, message) => {
    const pool = openPool(await serveSockets((socket) => socket.once('data', () => answer(socket))))
    await expect(post(pool)).rejects.toThrow(message)
    await expect.poll(() => pool.size).toBe(0)
  })

  test('says more than it was asked is left, and the call that came before stands', async () => {
    const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine'
    for (const more of ['x', 'HTTP/1.1 200 OK\r\n', answer]) {
      let sockets = 0
      const pool = openPool(
        await serveSockets((socket) => {
          sockets++
          socket.on('data', () => socket.write(answer + more))
        }),
      )
      expect((await post(pool)).body.toString()).toBe('fine')
      expect((await post(pool)).body.toString()).toBe('fine')
      expect(sockets).toBe(2)
    }
  })

  test('says something between two calls is left', async () => {
    const served: Socket[] = []
    const pool = openPool(
      await serveSockets((socket) => {
        served.push(socket)
        socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'))
      }),
    )
    await post(pool)
    served[0]!.write('HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n')
    await expect.poll(() => pool.size).toBe(0)
    expect((await post(pool)).status).toBe(200)
  })

  test('closes an idle connection is told of once, and one that said it would is not', async () => {
    const served: Socket[] = []
    let told = 0
    let close = ''
    const pool = openPool(
      await serveSockets((socket) => {
        served.push(socket)
        socket.on('data', () => socket.write(`HTTP/1.1 200 OK\r\n${close}content-length: 0\r\n\r\n`))
      }),
      { onServerClosed: () => told++ },
    )
    await post(pool)
    served[0]!.end()
    await expect.poll(() => told).toBe(1)
    close = 'connection: close\r\n'
    await post(pool)
    served[1]!.end()
    await expect.poll(() => pool.size).toBe(0)
    expect(told).toBe(1)
  })

  test.each([
    ['nothing', true, ''],
    ['the beginning of an answer', false, 'HTTP/1.1 2'],
    ['garbage', false, 'garbage'],
  ])('says %s on a connection that was there before fails its call, reused: %s', async (_, reused, answer) => {
    let calls = 0
    const pool = openPool(
      await serveSockets((socket) =>
        socket.on('data', () => {
          if (++calls === 1) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
          else socket.end(answer)
        }),
      ),
    )
    await post(pool)
    await expect(post(pool)).rejects.toMatchObject({ reused })
  })
})

describe('connections', () => {
  test('that nobody uses are closed in time, earlier where the server says so', async () => {
    const quick = openPool(await serveHttp(echo), { keepAliveMs: 50 })
    await Promise.all([post(quick), post(quick)])
    expect(quick.size).toBe(2)
    await expect.poll(() => quick.size).toBe(0)
    const named = openPool(
      await serveSockets((socket) =>
        socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 0\r\n\r\n')),
      ),
    )
    await post(named)
    await expect.poll(() => named.size, { timeout: 500 }).toBe(0)
  })

  test('are closed with the pool: calls under way and later ones end with the reason', async () => {
    const pool = openPool(await serveHttp(() => {}))
    const under = expect(post(pool)).rejects.toThrow('it is over')
    await sleep(20)
    await pool.close(new Error('it is over'))
    await under
    await expect(post(pool)).rejects.toThrow('it is over')
    expect(pool.size).toBe(0)
  })
})

test('a header that would begin another line is refused before anything is sent', () => {
  const pool = openPool('http://127.0.0.1:1')
  const handler = { onStart() {}, onHead() {}, onData: () => true, onEnd() {}, onError() {} }
  const send = (path: string, value: string) => pool.post({ path, headers: ['authorization', value], body: [] }, handler)
  expect(() => send('/x', 'Bearer a\r\nx: y')).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
  expect(() => send('/x y', 'Bearer a')).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
  expect(pool.size).toBe(0)
})
