import { expect, test } from 'vitest'
import { post, sessionRequest, startGateway, until } from './testing/start-gateway.ts'

const messages = [{ role: 'user' as const, content: 'Go on.' }]

test('a drain waits for calls in flight and holds new ones; resume lets them go in order with the new weights', async () => {
  const hold = Promise.withResolvers<void>()
  await using started = await startGateway({
    say: (_, call) => (call === 0 ? { text: 'old', beforeToken: (index) => (index === 1 ? hold.promise : undefined) } : 'new'),
  })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  const first = post(session.endpoint('agent'), { messages })
  await until(() => engine.sampledTokens() === 1)

  let drained = false
  const pause = gateway.pause({ drain: true }).then(() => {
    drained = true
  })
  const waiting = []
  for (const text of ['one', 'two', 'three']) {
    const { calls } = gateway.counts()
    waiting.push(post(session.endpoint('agent'), { messages: [{ role: 'user', content: text }] }))
    await until(() => gateway.counts().calls === calls + 1)
  }
  expect(await (await fetch(`${gateway.url}/health`)).json()).toEqual({ status: 'paused', inFlight: 1, waiting: 3, weightVersion: 0 })
  expect(drained).toBe(false)
  hold.resolve()
  await pause
  expect((await first).status).toBe(200)
  expect(gateway.counts().inFlight).toBe(0)
  expect(engine.requests.length).toBe(1)

  engine.publish(1)
  gateway.resume()
  await Promise.all(waiting)
  const prompts = engine.requests.slice(1).map(({ promptTokenIds }) => started.chat.decode(promptTokenIds))
  expect(prompts.map((prompt) => /one|two|three/.exec(prompt)![0])).toEqual(['one', 'two', 'three'])
  const turns = (await session.close())[0]!.turns
  expect(turns.map(({ weightVersions }) => weightVersions)).toEqual([0, 1, 1, 1].map((version) => [{ fromToken: 0, version }]))
})

test('a publish without a drain leaves spans of both versions in the turn', async () => {
  const hold = Promise.withResolvers<void>()
  await using started = await startGateway({
    say: () => ({ text: 'mixed', beforeToken: (index) => (index === 2 ? hold.promise : undefined) }),
  })
  const session = started.gateway.open(sessionRequest())
  const call = post(session.endpoint('agent'), { messages })
  await until(() => started.engine.sampledTokens() === 2)
  await started.gateway.pause({ drain: false })
  started.engine.publish(4)
  started.gateway.resume()
  hold.resolve()
  await call
  expect((await session.close())[0]!.turns[0]!.weightVersions).toEqual([
    { fromToken: 0, version: 0 },
    { fromToken: 2, version: 4 },
  ])
})

test('an aborted turn keeps the spans of what was sampled', async () => {
  const hold = Promise.withResolvers<void>()
  await using started = await startGateway({
    say: () => ({
      text: 'mixed and cut',
      beforeToken: async (index, signal) => {
        if (index === 2) started.engine.publish(4)
        if (index === 5) await Promise.race([hold.promise, new Promise((resolve) => signal.addEventListener('abort', resolve))])
      },
    }),
  })
  const session = started.gateway.open(sessionRequest())
  const call = post(session.endpoint('agent'), { messages })
  await until(() => started.engine.sampledTokens() === 5)
  const [trajectory] = await session.close()
  await call
  expect(trajectory!.turns[0]!.weightVersions).toEqual([
    { fromToken: 0, version: 0 },
    { fromToken: 2, version: 4 },
  ])
})

test('a client that hangs up while it is held leaves the queue', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  await gateway.pause({ drain: true })
  const controller = new AbortController()
  const gone = post(session.endpoint('agent'), { messages }, { signal: controller.signal })
  await until(() => gateway.counts().calls === 1)
  const stays = post(session.endpoint('agent'), { messages })
  await until(() => gateway.counts().calls === 2)
  controller.abort()
  await expect(gone).rejects.toThrow()
  await until(() => gateway.counts().failures === 1)
  gateway.resume()
  expect((await stays).status).toBe(200)
  expect(engine.requests.length).toBe(1)
})

test('a pause that nobody ends ends itself, and says so; one that is ended in time does not', async () => {
  const warnings: string[] = []
  await using started = await startGateway({ say: () => 'x', maxPauseMs: 60, onWarning: ({ message }) => warnings.push(message) })
  const session = started.gateway.open(sessionRequest())
  await started.gateway.pause({ drain: true })
  started.gateway.resume()
  await new Promise((resolve) => setTimeout(resolve, 90))
  expect(warnings).toEqual([])
  await started.gateway.pause({ drain: false })
  expect((await post(session.endpoint('agent'), { messages })).status).toBe(200)
  expect(warnings).toEqual([expect.stringContaining('raise maxPauseMs')])
})

test('a drain that takes longer than a pause may is given up', async () => {
  const gate = Promise.withResolvers<string>()
  await using started = await startGateway({ say: () => gate.promise, maxPauseMs: 40, onWarning: () => {} })
  const session = started.gateway.open(sessionRequest())
  const answer = post(session.endpoint('agent'), { messages })
  await until(() => started.gateway.counts().inFlight === 1)
  await expect(started.gateway.pause({ drain: true })).rejects.toMatchObject({ code: 'GATEWAY_FAILED' })
  gate.resolve('late')
  expect((await answer).status).toBe(200)
})

test('says when calls begin to be held and when they go on, each once', async () => {
  const heard: boolean[] = []
  await using started = await startGateway({ say: () => 'x', maxPauseMs: 40, onWarning: () => {} })
  const { gateway } = started
  const leave = gateway.onPause((paused) => heard.push(paused))
  gateway.resume()
  await gateway.pause({ drain: true })
  await gateway.pause({ drain: false })
  gateway.resume()
  expect(heard).toEqual([true, false])
  await gateway.pause({ drain: false })
  await until(() => heard.length === 4)
  expect(heard.slice(2)).toEqual([true, false])
  leave()
  await gateway.pause({ drain: true })
  expect(heard).toHaveLength(4)
})
