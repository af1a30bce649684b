import { expect, test } from 'vitest'
import type { GatewayWarning } from '../options.ts'
import { openFrozen } from '../testing/open-frozen.ts'
import { post, until } from '../testing/start-gateway.ts'
import { say } from '../testing/third-party.ts'

const messages = [{ role: 'user', content: 'x' }]

test('when one call is told to wait, those of other rollouts are not sent before, and each rollout is told that it waits', async () => {
  const waits: [string, boolean][] = []
  const tellingOf = (rollout: string) => ({ rollout, onWait: (isWaiting: boolean) => void waits.push([rollout, isWaiting]) })
  const times: number[] = []
  await using opened = await openFrozen({
    answer: (call, response, index) => {
      times.push(performance.now())
      if (index === 0) response.writeHead(503, { 'retry-after': '0.5' }).end('overloaded')
      else say(call, response, 'Yes.')
    },
    session: tellingOf('first'),
  })
  const first = [opened.ask()]
  await until(() => waits.length === 1)
  const second = opened.open(tellingOf('second'))
  // A second waiting call of a rollout is nothing new to it.
  const others = [opened.ask(), post(second.endpoint('agent'), { messages })]
  await until(() => waits.length === 2)
  expect(waits).toEqual([
    ['first', true],
    ['second', true],
  ])
  expect((await Promise.all([...first, ...others])).map(({ status }) => status)).toEqual([200, 200, 200])
  expect(times.slice(1).every((time) => time - times[0]! > 495)).toBe(true)
  expect(opened.party.calls).toHaveLength(4)
  expect(waits.slice(2).toSorted()).toEqual([
    ['first', false],
    ['second', false],
  ])
})

test('a session that is closed while its call waits ends at once, and the run is told once that the model is busy', async () => {
  const warnings: GatewayWarning[] = []
  await using opened = await openFrozen({
    answer: (_call, response) => void response.writeHead(429, { 'retry-after': '3600' }).end('{"error":{"message":"Slow down."}}'),
    route: { patienceMs: Number.POSITIVE_INFINITY },
    gateway: { onWarning: (warning) => warnings.push(warning) },
  })
  const answering = opened.ask()
  await until(() => warnings.length === 1)
  expect(warnings[0]).toMatchObject({ code: 'MODEL_BUSY', message: expect.stringContaining('429: Slow down.') })
  await opened.session.close()
  expect((await answering).status).toBe(404)
  expect(opened.party.calls).toHaveLength(1)
})

test('an account without credit is not waited for', async () => {
  const body = { error: { message: 'You exceeded your current quota.', type: 'insufficient_quota', code: 'insufficient_quota' } }
  await using opened = await openFrozen({
    answer: (_call, response) => void response.writeHead(429).end(JSON.stringify(body)),
    route: { patienceMs: Number.POSITIVE_INFINITY },
  })
  expect((await opened.ask()).status).toBe(429)
  expect(opened.session.failure()).toMatchObject({ code: 'FROZEN_MODEL_FAILED', message: expect.stringContaining('Add credit') })
})
