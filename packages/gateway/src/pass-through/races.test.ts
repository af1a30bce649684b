import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createGateway } from '../gateway.ts'
import { httpChatEngine } from '../testing/http-chat-engine.ts'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { sessionRequest, until } from '../testing/start-gateway.ts'

const ask = (url: string, content: string, more: object = {}, signal?: AbortSignal) =>
  fetch(`${url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'policy', messages: [{ role: 'user', content }], ...more }),
    ...(signal && { signal }),
  })

const metric = async (url: string, name: string) =>
  Number(new RegExp(`^aworld_train_gateway_${name} (.*)$`, 'm').exec(await (await fetch(`${url}/metrics`)).text())?.[1])

test('calls that waited together take no more turns than the budget has', async () => {
  await using started = await startChatGateway(() => 'ok')
  const session = started.gateway.open(sessionRequest({ maxTurns: 3 }))
  const { baseUrl } = session.endpoint('agent')
  await started.gateway.pause({ drain: true })
  const calls = Array.from({ length: 8 }, (_, index) => ask(baseUrl, `q${index}`))
  await expect.poll(async () => metric(started.gateway.url, 'waiting')).toBe(8)
  started.gateway.resume()
  const statuses = (await Promise.all(calls)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(3)
  expect(started.server.calls).toHaveLength(3)
  expect((await session.close())[0]!.turns).toHaveLength(3)
})

test('a turn that its client left is counted once as abandoned, and mixed where an update fell into it', async () => {
  await using started = await startChatGateway(() => ({ text: 'hello', halfWay: { events: 7, ends: 'hang' } }))
  const session = started.gateway.open(sessionRequest())
  const abort = new AbortController()
  const response = await ask(session.endpoint('agent').baseUrl, 'q', { stream: true }, abort.signal)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  for (let seen = ''; !seen.includes('"finish_reason":"stop"'); ) seen += (await reader.read()).value
  started.engine.setWeightVersion(1)
  abort.abort()
  await until(() => session.trajectories()[0]!.turns.length === 1)
  await until(() => started.gateway.counts().inFlight === 0 && started.gateway.counts().failures === 1)
  await sleep(20)
  expect(await metric(started.gateway.url, 'abandoned_turns_total')).toBe(1)
  const [trajectory] = await session.close()
  expect(trajectory!.turns).toMatchObject([{ delivered: 'abandoned', mixedVersions: { lowest: 0, highest: 1 } }])
})

test('what keeps a client awake never stands within an event of the engine', async () => {
  const events = [
    'data: {"id":"1","choices":[{"index":0,"delta":{"content":"o"},"token_ids":[111],"logprobs":{"content":[{"logprob":-1}]}}],"prompt_token_ids":[1]}\n\n',
    'data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    'data: [DONE]\n\n',
  ]
  const text = events.join('')
  const server = createServer(async (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const [from, to] of [
      [0, 40],
      [40, events[0]!.length],
      [events[0]!.length, text.length - 1],
      [text.length - 1, text.length],
    ]) {
      response.write(text.slice(from, to))
      await sleep(60)
    }
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const engine = httpChatEngine(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const gateway = await createGateway({ models: { policy: { kind: 'chat', engine } }, seed: 1, limits: { keepAwakeMs: 10 } })
  try {
    const answer = await (await ask(gateway.open(sessionRequest()).endpoint('agent').baseUrl, 'q', { stream: true })).text()
    for (const event of events) expect(answer).toContain(event)
    expect(answer.length).toBeGreaterThan(text.length)
  } finally {
    await gateway.close()
    await engine.close()
    server.close()
  }
})
