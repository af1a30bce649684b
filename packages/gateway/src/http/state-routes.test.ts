import { expect, test } from 'vitest'
import { post, sessionRequest, startGateway, until } from '../testing/start-gateway.ts'

const user = { role: 'user', content: 'Hi.' }
const ask = async (url: string, path: string) => {
  const answer = await fetch(url + path)
  return { status: answer.status, retryAfter: answer.headers.get('retry-after'), ...((await answer.json()) as object) }
}

test('ready says why not while weights are updated; the process is healthy all the while', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { gateway } = started
  expect(await ask(gateway.url, '/ready')).toEqual({ status: 'ready', retryAfter: null, reasons: [] })
  await gateway.pause({ drain: true })
  expect(gateway.notReady()).toEqual(['calls are held while weights are updated'])
  const answer = await fetch(`${gateway.url}/ready`)
  // No time to retry is named, because nobody knows when an update ends.
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, null])
  expect((await fetch(`${gateway.url}/health`)).status).toBe(200)
  gateway.resume()
  expect((await fetch(`${gateway.url}/ready`)).status).toBe(200)
})

test('an engine that is not ready is named with its reason, its replicas are gauges', async () => {
  let ready = false
  const replica = { name: 'gpu-1', reason: null, inFlight: 3, queued: 2, oldestQueuedMs: 1_500 }
  await using started = await startGateway({
    say: [],
    health: () => ({ ready, reason: ready ? null : 'none of its 2 servers answers', replicas: [{ ...replica, ready }] }),
  })
  const { gateway } = started
  expect(gateway.notReady()).toEqual(['model "tiny": none of its 2 servers answers'])
  const metrics = await gateway.metrics()
  for (const [name, value] of Object.entries({ ready: 0, in_flight: 3, queued: 2, oldest_queued_seconds: 1.5 }))
    expect(metrics).toContain(`aworld_train_gateway_replica_${name}{model="tiny",replica="gpu-1"} ${value}\n`)
  ready = true
  expect((await fetch(`${gateway.url}/ready`)).status).toBe(200)
})

test('a gateway that drains is not ready, goes on serving, and resolves when nothing is in flight', async () => {
  const hold = Promise.withResolvers<void>()
  await using started = await startGateway({
    say: (_, call) => ({ text: 'Fine.', beforeToken: () => (call === 0 ? hold.promise : undefined) }),
  })
  const { gateway, engine } = started
  const endpoint = gateway.open(sessionRequest()).endpoint('agent')
  const slow = post(endpoint, { messages: [user] })
  await until(() => engine.inFlight() === 1)
  let drained = false
  const draining = gateway.drain(AbortSignal.timeout(30_000)).then(() => {
    drained = true
  })
  expect((await fetch(`${gateway.url}/ready`)).status).toBe(503)
  expect((await post(endpoint, { messages: [user] })).status).toBe(200)
  expect(drained).toBe(false)
  hold.resolve()
  expect((await slow).status).toBe(200)
  await draining
})

test('a session that is no rollout is refused above its calls, and no time is made up; rollouts wait', async () => {
  const hold = Promise.withResolvers<void>()
  await using started = await startGateway({ say: () => ({ text: 'Fine.', beforeToken: () => hold.promise }) })
  const { gateway, engine } = started
  const guest = gateway.open(sessionRequest({ rollout: 'serve', maxCallsInFlight: 2 })).endpoint('agent')
  const rollout = gateway.open(sessionRequest()).endpoint('agent')
  const calls = [guest, guest, rollout, rollout, rollout].map((endpoint) => post(endpoint, { messages: [user] }))
  await until(() => engine.inFlight() === 5)
  const refused = await post(guest, { messages: [user] })
  expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('x-should-retry')]).toEqual([503, null, null])
  expect(refused.json().error).toMatchObject({ code: 'gateway_overloaded', message: expect.stringMatching(/^2 calls.*maxCallsInFlight/) })
  hold.resolve()
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(5).fill(200))
  expect((await post(guest, { messages: [user] })).status).toBe(200)
  expect(await gateway.metrics()).toContain('refused_total{reason="overloaded"} 1\n')
})
