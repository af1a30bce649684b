import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { openaiClient, post, sessionRequest, startGateway, until } from './testing/start-gateway.ts'

const slow = { text: 'a long answer that takes its time', pieceDelayMs: 5 }
const messages = [{ role: 'user' as const, content: 'Go on.' }]

test('a client that hangs up aborts the engine; the tokens stay as an abandoned turn', async () => {
  await using started = await startGateway({ say: [slow, 'Short.'] })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  const controller = new AbortController()
  const call = post(session.endpoint('agent'), { messages }, { signal: controller.signal })
  await until(() => engine.sampledTokens() >= 3)
  controller.abort()
  await expect(call).rejects.toThrow()
  await until(() => engine.aborted() === 1 && gateway.counts().inFlight === 0)

  await openaiClient(session.endpoint('agent')).chat.completions.create({ model: 'any', messages })
  const turns = (await session.close())[0]!.turns
  expect(turns.map(({ delivered }) => delivered)).toEqual(['abandoned', 'delivered'])
  expect(turns[0]!.finishReason).toEqual({ unified: 'aborted', raw: 'client-closed' })
  expect(turns[0]!.completionTokenIds.length).toBeGreaterThanOrEqual(3)
  expect(turns[0]!.weightVersions).toEqual([{ fromToken: 0, version: 0 }])
  expect(turns[1]!.parent).toBeNull()
  expect(turns[0]!.completionTokenIds.length + turns[1]!.completionTokenIds.length).toBe(engine.sampledTokens())
  expect(gateway.counts()).toMatchObject({ calls: 2, failures: 1 })
})

test('a client that stops reading a stream abandons the turn; a request that extends it makes it delivered', async () => {
  await using started = await startGateway({ say: [slow, 'Right.'] })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent'))
  const stream = await client.chat.completions.create({ model: 'any', messages, stream: true })
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break
  await until(() => engine.aborted() === 1 && gateway.counts().inFlight === 0)
  const [abandoned] = session.trajectories()[0]!.turns
  expect(abandoned!.delivered).toBe('abandoned')

  const history = [
    ...messages,
    { role: 'assistant' as const, content: abandoned!.message.content! },
    { role: 'user' as const, content: 'And?' },
  ]
  await client.chat.completions.create({ model: 'any', messages: history })
  const turns = (await session.close())[0]!.turns
  expect(turns[1]!.parent).toBe(0)
  expect(turns[0]!.delivered).toBe('delivered')
})

test('forty clients that hang up leave nothing in flight, and the next forty are served', async () => {
  await using started = await startGateway({ say: (_, call) => (call < 40 ? slow : 'Fine.') })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  const endpoint = session.endpoint('agent')
  const controller = new AbortController()
  const calls = Array.from({ length: 40 }, () => post(endpoint, { messages }, { signal: controller.signal }))
  await until(() => engine.inFlight() === 40)
  controller.abort()
  await Promise.allSettled(calls)
  await until(() => engine.inFlight() === 0 && gateway.counts().inFlight === 0)
  expect(engine.aborted()).toBe(40)
  const next = await Promise.all(Array.from({ length: 40 }, () => post(endpoint, { messages })))
  expect(next.map(({ status }) => status)).toEqual(Array(40).fill(200))
  const turns = (await session.close())[0]!.turns
  expect(turns.reduce((sum, turn) => sum + turn.completionTokenIds.length, 0)).toBe(engine.sampledTokens())
})

test('tokens drawn between the hang-up and its notice are recorded too', async () => {
  await using started = await startGateway({ say: () => ({ ...slow, piecesAfterAbort: 3 }) })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  const controller = new AbortController()
  const call = post(session.endpoint('agent'), { messages }, { signal: controller.signal })
  await until(() => engine.sampledTokens() >= 2)
  controller.abort()
  await expect(call).rejects.toThrow()
  await until(() => engine.aborted() === 1 && gateway.counts().inFlight === 0)
  const turns = (await session.close())[0]!.turns
  expect(turns[0]!.completionTokenIds.length).toBe(engine.sampledTokens())
})

test('an answer that its client did not read to the end is abandoned', async () => {
  const length = 100_000
  await using started = await startGateway({
    say: () => ({ text: 'x'.repeat(length), stop: false, pieceSize: length }),
    contextLength: 2 * length,
  })
  const { gateway } = started
  const session = gateway.open(sessionRequest({ sampling: { ...sessionRequest().sampling, maxTokens: length } }))
  const url = new URL(session.endpoint('agent').baseUrl)
  const body = JSON.stringify({ messages, logprobs: true })
  const socket = connect(Number(url.port), url.hostname)
  socket.pause()
  socket.write(`POST ${url.pathname}/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
  await until(() => session.trajectories()[0]!.turns.length === 1 && gateway.counts().inFlight === 0)
  expect(session.trajectories()[0]!.turns[0]!.delivered).toBe('pending')
  socket.destroy()
  await until(() => session.trajectories()[0]!.turns[0]!.delivered === 'abandoned')
  expect(gateway.counts().failures).toBe(1)
})

test('an answer is sent only when its turn is durable, whole or streamed', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const durable = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const seen: string[] = []
  const session = started.gateway.open(
    sessionRequest({
      async onTurn(agent, turn) {
        seen.push(`${agent} ${turn.index} ${turn.delivered}`)
        await durable[turn.index]!.promise
      },
    }),
  )
  for (const stream of [false, true]) {
    let answered = false
    const answer = post(session.endpoint('agent'), { messages, stream }).then((result) => {
      answered = true
      return result
    })
    const index = Number(stream)
    await until(() => seen.length === index + 1)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(answered).toBe(false)
    durable[index]!.resolve()
    expect((await answer).status).toBe(200)
  }
  expect(seen).toEqual(['agent 0 pending', 'agent 1 pending'])
})

test('a turn that cannot be made durable is an error of the call and of the session, and is abandoned', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const session = started.gateway.open(
    sessionRequest({
      onTurn: async () => {
        throw new Error('no space left on device')
      },
    }),
  )
  const { status, headers, json } = await post(session.endpoint('agent'), { messages })
  expect(status).toBe(500)
  expect(headers.get('x-should-retry')).toBe('false')
  expect(json().error).toMatchObject({ code: 'store_failed', message: 'no space left on device' })
  expect(session.failure()).toMatchObject({ code: 'STORE_FAILED' })
  expect((await session.close())[0]!.turns.map(({ delivered }) => delivered)).toEqual(['abandoned'])
})
