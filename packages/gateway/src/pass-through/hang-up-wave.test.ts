import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { sessionRequest, until } from '../testing/start-gateway.ts'

const clients = 512

/** A client on a bare socket that asks for a stream; `head` resolves when the first event has come. */
function ask(baseUrl: string) {
  const { hostname, port, pathname } = new URL(`${baseUrl}/chat/completions`)
  const body = JSON.stringify({ stream: true, messages: [{ role: 'user', content: 'Gold?' }] })
  const socket = connect(Number(port), hostname)
  let text = ''
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<string>()
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    text += chunk
    if (text.includes('data:')) begun.resolve()
    if (text.endsWith('\r\n0\r\n\r\n')) ended.resolve(text)
  })
  socket.on('error', () => {})
  socket.write(`POST ${pathname} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  return { socket, begun: begun.promise, ended: ended.promise }
}

test(`${clients} clients hang up in the middle of a stream: the engine sees it, nothing stays in flight, and the next wave is served whole`, async () => {
  let hangs = true
  await using started = await startChatGateway(() => ({ text: 'abc', ...(hangs && { halfWay: { events: 3, ends: 'hang' as const } }) }))
  const sessions = Array.from({ length: 16 }, (_, index) => started.gateway.open(sessionRequest({ rollout: `wave-${index}` })))
  const bystander = started.gateway.open(sessionRequest({ rollout: 'bystander' }))
  const urls = Array.from({ length: clients }, (_, index) => sessions[index % 16]!.endpoint('agent').baseUrl)

  const waiting = ask(bystander.endpoint('agent').baseUrl)
  const first = urls.map(ask)
  await Promise.all([...first, waiting].map(({ begun }) => begun))
  expect(started.gateway.counts().inFlight).toBe(clients + 1)
  for (const { socket } of first) socket.destroy()
  await until(() => started.server.calls.filter(({ aborted }) => aborted).length === clients)
  await until(() => started.gateway.counts().inFlight === 1)
  expect(started.engine.inFlight()).toBe(1)
  expect(started.server.inFlight()).toBe(1)

  hangs = false
  const second = urls.map(ask)
  const answers = await Promise.all(second.map(({ ended }) => ended))
  expect(answers.filter((text) => text.includes('[DONE]'))).toHaveLength(clients)
  for (const { socket } of [...second, waiting]) socket.destroy()
  await until(() => started.gateway.counts().inFlight === 0)
  const turns = (await Promise.all(sessions.map((session) => session.close()))).flat().flatMap((trajectory) => trajectory.turns)
  expect(turns.filter(({ delivered }) => delivered === 'delivered')).toHaveLength(clients)
  expect(sessions.map((session) => session.failure())).toEqual(Array(16).fill(null))
  expect(bystander.failure()).toBeNull()
  await bystander.close()
  expect(started.engine.inFlight()).toBe(0)
  await until(() => started.server.inFlight() === 0)
})

test('a client that does not read holds the engine back instead of filling memory', async () => {
  const more = `data: ${'x'.repeat(32_000_000)}\n\n`
  await using started = await startChatGateway(() => ({ raw: more, type: 'text/event-stream' }))
  const session = started.gateway.open(sessionRequest())
  const { socket, begun } = ask(session.endpoint('agent').baseUrl)
  await begun
  socket.pause()
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(started.server.inFlight()).toBe(1)
  socket.destroy()
  await until(() => started.server.inFlight() === 0 && started.engine.inFlight() === 0)
  await session.close()
})
