import { expect, test } from 'vitest'
import { rawPost, statusesIn, talk } from '../testing/raw-socket.ts'
import { sessionRequest, startGateway, until } from '../testing/start-gateway.ts'

test('three thousand idle sockets do not disturb a thousand calls, and all are let go', async () => {
  const [idle, active] = [3_000, 1_000]
  const everyone = Promise.withResolvers<void>()
  await using started = await startGateway({
    say: () => ({ text: 'Fine.', beforeToken: () => everyone.promise }),
  })
  const { gateway, engine } = started
  const waiting = Array.from({ length: idle }, () => talk(gateway.url, 'GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n'))
  await until(() => waiting.every(({ received }) => received() !== ''))
  const session = gateway.open(sessionRequest())
  const path = `${new URL(session.endpoint('agent').baseUrl).pathname}/chat/completions`
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'Hi.' }] })
  const calls = Array.from({ length: active }, () => talk(gateway.url, rawPost(path, body)))
  await until(() => engine.inFlight() === active)
  const metrics = await gateway.metrics()
  expect(metrics).toContain(`\naworld_train_gateway_in_flight ${active}\n`)
  expect(metrics).toContain(`\naworld_train_gateway_sockets ${idle + active}\n`)
  everyone.resolve()
  await until(() => calls.every(({ received }) => received().endsWith('}')))
  expect(new Set(calls.flatMap(({ received }) => statusesIn(received())))).toEqual(new Set([200]))
  expect((await session.close())[0]!.turns.filter(({ delivered }) => delivered === 'delivered')).toHaveLength(active)
  expect(gateway.counts()).toMatchObject({ calls: active, failures: 0, inFlight: 0 })
  for (const { socket } of [...waiting, ...calls]) socket.destroy()
  await expect.poll(() => gateway.metrics()).toContain('\naworld_train_gateway_sockets 0\n')
})
