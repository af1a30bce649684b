import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { quickFleet, send } from '../testing/fleet-calls.ts'

const well = '{"weight_version":"default"}'

/** A server that passes its health checks and answers calls with these bytes. */
async function serveBytes(answer: string) {
  const sockets = new Set<Socket>()
  let calls = 0
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      if (bytes.toString('latin1').startsWith('GET')) socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${well.length}\r\n\r\n${well}`)
      else if (++calls === 1) socket.write(answer, 'latin1')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const fleet = await quickFleet([`http://127.0.0.1:${(server.address() as AddressInfo).port}`], { probeIntervalMs: 60_000 })
  return {
    fleet,
    calls: () => calls,
    async [Symbol.asyncDispose]() {
      await fleet.close()
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

describe('an answer is refused at once, and not asked for again, that has', () => {
  test.each([
    ['no HTTP', 'garbage'],
    ['line feeds alone in its head', 'HTTP/1.1 200 OK\ncontent-length: 2\n\n{}'],
    ['a NUL in a header', 'HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 2\r\n\r\n{}'],
    ['a line feed in a header', 'HTTP/1.1 200 OK\r\nx: a\nb\r\ncontent-length: 2\r\n\r\n{}'],
    ['a length that ends with a line feed', 'HTTP/1.1 200 OK\r\ncontent-length: 2\n\r\n\r\n{}'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}'],
    ['a length and chunks', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'],
    ['junk in the size of a chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2 junk\r\n{}\r\n0\r\n\r\n'],
    ['a chunk longer than its size', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n'],
    ['line feeds alone behind its chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: y\n\n'],
  ])('%s', async (_name, answer) => {
    await using served = await serveBytes(answer)
    await expect(send(served.fleet, { signal: AbortSignal.timeout(60_000) })).rejects.toMatchObject({
      code: 'POLICY_UNAVAILABLE',
      message: expect.stringContaining('cannot be understood'),
    })
    expect(served.calls()).toBe(1)
    expect(served.fleet.counts()).toMatchObject({ inFlight: 0, retries: 0 })
  })
})
