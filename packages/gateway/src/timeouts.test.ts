import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { openaiClient, post, sessionRequest, startGateway, until } from './testing/start-gateway.ts'

const messages = [{ role: 'user' as const, content: 'Go on.' }]
const short = { headersTimeoutMs: 1_000, requestTimeoutMs: 1_000, keepAliveTimeoutMs: 1_000 }

/** Opens a socket, writes `text` and collects what arrives until the other side closes. */
function talk(url: string, text: string): { socket: Socket; received: () => string; closed: () => boolean } {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let received = ''
  let closed = false
  socket.on('data', (chunk) => {
    received += chunk
  })
  socket.on('close', () => {
    closed = true
  })
  socket.on('error', () => {})
  socket.write(text)
  return { socket, received: () => received, closed: () => closed }
}

for (const stream of [false, true]) {
  test(`an answer may take longer than every timeout (${stream ? 'streamed' : 'whole'})`, async () => {
    const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 1_500))
    await using started = await startGateway({
      say: () => ({ text: 'Late.', beforeToken: (index) => (index % 3 === 0 ? pause() : undefined) }),
      limits: short,
    })
    const session = started.gateway.open(sessionRequest())
    const client = openaiClient(session.endpoint('agent')).chat.completions
    const completion = stream
      ? await client.stream({ model: 'any', messages }).finalChatCompletion()
      : await client.create({ model: 'any', messages })
    expect(completion.choices[0]!.message.content).toBe('Late.')
  })
}

for (const stream of [false, true]) {
  test(`a client that waits is sent bytes without meaning (${stream ? 'streamed' : 'whole'})`, async () => {
    const hold = Promise.withResolvers<void>()
    await using started = await startGateway({
      say: (_, call) => ({ text: 'Late.', beforeToken: () => hold.promise, ...(call === 1 && { error: new Error('lost the replica') }) }),
      limits: { keepAwakeMs: 20 },
    })
    const session = started.gateway.open(sessionRequest())
    const { pathname } = new URL(session.endpoint('agent').baseUrl)
    const body = JSON.stringify({ messages, stream })
    const request = `POST ${pathname}/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    const { received, socket } = talk(started.gateway.url, request)
    await until(() => received().split(stream ? ': waiting' : '\r\n1\r\n \r\n').length > 2)
    expect(received()).toContain('200 OK')
    socket.destroy()

    const client = openaiClient(session.endpoint('agent')).chat.completions
    const failing = stream ? client.stream({ model: 'any', messages }).finalChatCompletion() : post(session.endpoint('agent'), { messages })
    const outcome = failing.then(
      (result) => result,
      (error: unknown) => error,
    )
    await until(() => started.engine.requests.length === 2)
    const late = stream ? client.stream({ model: 'any', messages }).finalChatCompletion() : client.create({ model: 'any', messages })
    await until(() => started.engine.requests.length === 3)
    await new Promise((resolve) => setTimeout(resolve, 100))
    hold.resolve()
    expect((await late).choices[0]!.message.content).toBe('Late.')
    if (stream) expect(await outcome).toBeInstanceOf(Error)
    else expect(((await outcome) as Awaited<ReturnType<typeof post>>).json().error.message).toBe('lost the replica')
  })
}

test('a client that never finishes its headers or its body is cut off', async () => {
  await using started = await startGateway({ say: [], limits: short })
  const { pathname } = new URL(started.gateway.open(sessionRequest()).endpoint('agent').baseUrl)
  const line = `POST ${pathname}/chat/completions HTTP/1.1\r\nhost: localhost\r\n`
  for (const text of [line, `${line}content-length: 100\r\n\r\n{"messages"`]) {
    const { received, closed } = talk(started.gateway.url, text)
    await until(closed)
    expect(received()).toContain('408')
  }
  expect(started.gateway.counts()).toMatchObject({ calls: 0, inFlight: 0 })
})

test('headers above the limit are refused', async () => {
  await using started = await startGateway({ say: [], limits: { maxHeaderBytes: 4096 } })
  const { received, closed } = talk(started.gateway.url, `GET /health HTTP/1.1\r\nhost: localhost\r\nx-long: ${'x'.repeat(10_000)}\r\n\r\n`)
  await until(closed)
  expect(received()).toContain('431')
})

test('what is not HTTP is refused, and others are served', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { received, closed } = talk(started.gateway.url, '\u0016\u0003\u0001 not HTTP\r\n\r\n')
  await until(closed)
  expect(received()).toContain('400')
  expect((await post(started.gateway.open(sessionRequest()).endpoint('agent'), { messages })).status).toBe(200)
})

test('closing the gateway ends its calls and frees its port', async () => {
  await using started = await startGateway({ say: () => ({ text: 'a long answer that takes its time', pieceDelayMs: 5 }) })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  const call = post(session.endpoint('agent'), { messages }).then(
    ({ status }) => status,
    () => 'reset',
  )
  await until(() => engine.sampledTokens() > 0)
  await gateway.close()
  expect(await call).not.toBe(200)
  expect(engine.inFlight()).toBe(0)
  expect(session.trajectories()[0]!.turns).toMatchObject([{ delivered: 'abandoned' }])
  await expect(fetch(`${gateway.url}/health`)).rejects.toThrow()
})
