import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { quickFleet, send } from '../testing/fleet-calls.ts'
import { sendJson } from '../testing/http-server.ts'
import { createToyVllm } from '../testing/vllm-server.ts'

// The timers are fake from the start, because undici keeps one timer of its own for all requests.
beforeAll(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterAll(() => void vi.useRealTimers())

test('an answer may take longer than the 300 s after which the client library gives up by itself', async () => {
  const server = await createToyVllm()
  const pending: { response: ServerResponse | null } = { response: null }
  server.answer((request, response) => {
    if (request.path === '/answer') pending.response = response
    else return server.route(request, response)
  })
  const fleet = await quickFleet([server.url], { probeIntervalMs: 3_600_000 })
  const outcome = send(fleet).then(
    ({ text }) => text,
    (error: unknown) => error,
  )
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  while (pending.response === null) await turns(1)
  await vi.advanceTimersByTimeAsync(400_000)
  await turns(20)
  sendJson(pending.response, 200, { fine: true })
  expect(await outcome).toContain('fine')
  await fleet.close()
  await server.close()
})
