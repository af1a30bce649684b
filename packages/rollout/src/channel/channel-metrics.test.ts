import { afterAll, beforeAll, expect, test } from 'vitest'
import { sampled, startChannel, token, until, writeModel } from './start-channel.test-support.ts'

let model: Awaited<ReturnType<typeof writeModel>>
beforeAll(async () => {
  model = await writeModel()
})
afterAll(() => model[Symbol.asyncDispose]())

const prefix = 'aworld_train_channel_'

/** Values of the channel's metrics, by name and labels. */
async function scrape(url: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text()
  const lines = text.split('\n').filter((line) => line.startsWith(prefix))
  return Object.fromEntries(
    lines.map((line) => [line.slice(prefix.length, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}

test('the channel is in /metrics: workers, rollouts, rows, frames, reconnects and aborted calls', async () => {
  await using started = await startChannel(model, { calls: 2, retries: 0 })
  const { url } = started.server
  expect(await scrape(url)).toMatchObject({
    connections: 0,
    workers: 0,
    open_rollouts: 0,
    rows_total: 0,
    'frames_total{direction="sent"}': 0,
  })

  const client = await started.connect()
  const { key } = await client.submit({})
  client.send({ type: 'accepted', key })
  await until(() => started.outcomes.length === 2)
  const done = await scrape(url)
  // Hello, submit, two answers and the word that rows were taken; welcome, ready, queued, started, two calls and the result.
  expect(done).toMatchObject({
    connections: 1,
    workers: 1,
    open_rollouts: 0,
    calls_in_flight: 0,
    rows_total: 1,
    row_tokens_total: 6,
    'frames_total{direction="received"}': 5,
    'frames_total{direction="sent"}': client.heard.length,
    'submissions_total{outcome="sent"}': 1,
    'submissions_total{outcome="accepted"}': 1,
    'aborted_calls_total{by="service"}': 0,
    reconnects_total: 0,
  })
  expect(done['frame_bytes_total{direction="sent"}']).toBeGreaterThan(200)

  const second = await started.connect({
    hello: { worker: 'second' },
    sample: ({ turn }) => (turn === 0 ? { ids: [111], logprobs: [-0.1], finish: 'aborted' } : sampled),
  })
  await second.submit({ uid: 'given-up' })
  const waiting = await started.connect({ hello: { worker: 'third' }, sample: () => 'never' })
  waiting.submit({ uid: 'cut' }).catch(() => {})
  await until(() => waiting.heard.some(({ type }) => type === 'generate'))
  expect(await scrape(url)).toMatchObject({ workers: 3, open_rollouts: 1, calls_in_flight: 1 })
  waiting.terminate()
  await until(() => started.channel.counts().connections === 2)
  const back = await started.connect({ hello: { worker: 'third' }, sample: () => 'never' })
  const cut = back.submit({ uid: 'cut' })
  cut.catch(() => {})
  await until(() => back.heard.some(({ type }) => type === 'generate'))
  back.send({ type: 'cancel', key: 'run/first/train/1/cut/0', reason: 'enough' })
  await until(() => started.channel.counts().open === 0)
  const after = await scrape(url)
  expect(after).toMatchObject({
    workers: 3,
    open_rollouts: 0,
    reconnects_total: 1,
    lost_connections_total: 1,
    'aborted_calls_total{by="service"}': 1,
    'submissions_total{outcome="cancelled"}': 1,
  })
  expect(after['aborted_calls_total{by="trainer"}']).toBeGreaterThanOrEqual(1)
  expect(Object.keys(after).join('\n')).not.toMatch(/first|third|cut/)
})
