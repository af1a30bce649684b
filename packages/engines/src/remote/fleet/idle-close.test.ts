import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { quickFleet, send } from '../testing/fleet-calls.ts'
import { sendJson } from '../testing/http-server.ts'
import { createToyVllm } from '../testing/vllm-server.ts'

/** A server that closes each socket `afterMs` after its second call has arrived, as uvicorn does with an idle one. */
async function closing(afterMs: number, close: (socket: Socket) => unknown = (socket) => socket.destroy()) {
  const server = await createToyVllm()
  const sockets = new WeakSet<Socket>()
  let calls = 0
  server.answer((request, response) => {
    if (request.path !== '/answer') return server.route(request, response)
    calls++
    const socket = response.socket!
    if (!sockets.has(socket)) {
      sockets.add(socket)
      return sendJson(response, 200, { fine: true })
    }
    if (afterMs === 0) close(socket)
    else setTimeout(close, afterMs, socket)
  })
  const raceMs = afterMs === 0 ? 60_000 : afterMs / 2
  const fleet = await quickFleet([server.url], { maxInFlight: 1, raceMs, probeIntervalMs: 60_000, keepAliveMs: 60_000 })
  return {
    fleet,
    calls: () => calls,
    async [Symbol.asyncDispose]() {
      await fleet.close()
      await server.close()
    },
  }
}

test.each([
  ['closing', (socket: Socket) => socket.end()],
  ['resetting', (socket: Socket) => socket.resetAndDestroy()],
])('a call that meets a socket which the server was %s is sent once more on a fresh one', async (_how, close) => {
  await using started = await closing(0, close)
  for (let call = 0; call < 4; call++) expect((await send(started.fleet)).text).toContain('fine')
  expect(started.fleet.counts()).toMatchObject({ retries: 2, failures: 0, inFlight: 0 })
  expect(started.calls()).toBe(6)
})

test('a call whose socket closes later is not: the server may have been generating', async () => {
  await using started = await closing(600)
  await send(started.fleet)
  await expect(send(started.fleet)).rejects.toMatchObject({
    code: 'POLICY_UNAVAILABLE',
    message: expect.stringContaining('without an answer'),
  })
  expect(started.fleet.counts()).toMatchObject({ retries: 0, failures: 1, inFlight: 0 })
  expect(started.calls()).toBe(2)
})
