import { expect, test } from 'vitest'
import { rawPost, statusesIn, talk } from '../testing/raw-socket.ts'
import { post, type Started, sessionRequest, startGateway, until } from '../testing/start-gateway.ts'

const user = { role: 'user', content: 'Hi.' }
const whole = JSON.stringify({ messages: [user] })
const megabyte = 1024 * 1024
const pathOf = ({ gateway }: Started, rollout = 'rollout-1') =>
  `${new URL(gateway.open(sessionRequest({ rollout })).endpoint('agent').baseUrl).pathname}/chat/completions`

async function refusedBy(started: Started, reason: string): Promise<number> {
  const text = await started.gateway.metrics()
  return Number(new RegExp(`refused_total\\{reason="${reason}"\\} (\\d+)`).exec(text)?.[1])
}

const open = { say: () => 'Fine.' } as const

for (const chunked of [false, true]) {
  test(`200 MB are refused with 413 and never held (${chunked ? 'chunked' : 'with their length'})`, async () => {
    await using started = await startGateway({ ...open, limits: { maxBodyBytes: 2 * megabyte } })
    const size = 200 * megabyte
    const piece = Buffer.alloc(megabyte, 'x')
    const framed = chunked ? Buffer.concat([Buffer.from(`${megabyte.toString(16)}\r\n`), piece, Buffer.from('\r\n')]) : piece
    const coding = chunked ? 'transfer-encoding: chunked' : `content-length: ${size}`
    const { socket, received, closed } = talk(
      started.gateway.url,
      `POST ${pathOf(started)} HTTP/1.1\r\nhost: localhost\r\n${coding}\r\n\r\n`,
    )
    const before = process.memoryUsage().arrayBuffers
    let most = 0
    // The rest of a refused body is read for five seconds, which a slow machine may exceed.
    for (let sent = 0; sent < 200 && !closed(); sent++) {
      if (!socket.write(framed)) await until(() => closed() || !socket.writableNeedDrain)
      most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    }
    if (chunked) socket.write('0\r\n\r\n')
    await until(() => received() !== '')
    expect(statusesIn(received())).toEqual([413])
    expect(received()).toContain('larger than 2097152 bytes')
    // Released memory waits for the garbage collector. If the bodies were held, it would be all of it.
    expect(most).toBeLessThan(size * 0.8)
    expect(await refusedBy(started, 'too-large')).toBe(1)
    socket.destroy()
  })
}

test('a refused body is read to its end, so the next request on its socket is served', async () => {
  await using started = await startGateway({ ...open, limits: { maxBodyBytes: megabyte } })
  const health = 'GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n'
  const { socket, received } = talk(started.gateway.url, rawPost(pathOf(started), 'x'.repeat(2 * megabyte)) + health)
  await until(() => statusesIn(received()).length === 2)
  expect(statusesIn(received())).toEqual([413, 200])
  socket.destroy()
})

test('a body without an end is refused at the limit; one below it is cut off in time', async () => {
  await using started = await startGateway({ ...open, limits: { maxBodyBytes: 10_000, headersTimeoutMs: 3_000, requestTimeoutMs: 4_000 } })
  const head = `POST ${pathOf(started)} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n`
  const endless = talk(started.gateway.url, head)
  const slow = talk(started.gateway.url, head)
  const drip = setInterval(() => {
    if (endless.socket.writable) endless.write(`3e8\r\n${'x'.repeat(1_000)}\r\n`)
    if (slow.socket.writable) slow.write('1\r\nx\r\n')
  }, 5)
  await until(() => statusesIn(endless.received()).length > 0 && slow.closed())
  clearInterval(drip)
  expect(statusesIn(endless.received())[0]).toBe(413)
  expect(statusesIn(slow.received())).toEqual([408])
  for (const { socket } of [endless, slow]) socket.destroy()
  await expect.poll(() => started.gateway.counts().inFlight).toBe(0)
})

test('a body is asked for only where it will be read', async () => {
  await using started = await startGateway({ ...open, limits: { maxBodyBytes: 10_000 } })
  const ask = (path: string, length: number) =>
    talk(started.gateway.url, `POST ${path} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: ${length}\r\n\r\n`)
  const good = ask(pathOf(started), whole.length)
  await until(() => good.received().includes('100 Continue\r\n\r\n'))
  good.write(whole)
  const large = ask(pathOf(started, 'other'), 20_000)
  const unknown = ask('/r/unknown/v1/chat/completions', 100)
  const strange = talk(
    started.gateway.url,
    `POST ${pathOf(started, 'third')} HTTP/1.1\r\nhost: localhost\r\nexpect: the-best\r\ncontent-length: 2\r\n\r\n{}`,
  )
  const all = [good, large, unknown, strange]
  await until(() => all.every(({ received }) => /HTTP\/1\.1 [2-5]/.test(received())))
  expect(all.map(({ received }) => statusesIn(received()))).toEqual([[100, 200], [413], [404], [417]])
  for (const { socket } of all) socket.destroy()
})

test('a hundred bad bodies at once leave another rollout untouched', async () => {
  await using started = await startGateway({ ...open, limits: { maxBodyBytes: 100_000 } })
  const { gateway } = started
  const bad = gateway.open(sessionRequest({ rollout: 'bad' }))
  const other = gateway.open(sessionRequest({ rollout: 'other' }))
  const bodies = [
    '',
    '{',
    'null',
    '[]',
    '"x"',
    `{"messages":${'['.repeat(40_000)}`,
    'x'.repeat(200_000),
    '{"messages":[]}',
    '\u0000',
    '{"messages":[{"role":"king"}]}',
  ]
  const calls = Array.from({ length: 100 }, (_, index) => post(bad.endpoint('agent'), bodies[index % bodies.length]))
  const good = Array.from({ length: 20 }, () => post(other.endpoint('agent'), { messages: [user] }))
  const statuses = (await Promise.all(calls)).map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([400, 413]))
  expect((await Promise.all(good)).map(({ status }) => status)).toEqual(Array(20).fill(200))
  expect([bad.failure(), other.failure()]).toEqual([null, null])
  expect((await other.close())[0]!.turns).toHaveLength(20)
  const metrics = await gateway.metrics()
  expect(metrics).toContain('outcome="failed",code="GATEWAY_BAD_REQUEST"} 90\n')
  expect(await refusedBy(started, 'too-large')).toBe(10)
})

test('an unknown capability gets one answer in every shape, with the body unread', async () => {
  const warnings: string[] = []
  await using started = await startGateway({
    ...open,
    logger: { warn: (message, details) => void warnings.push(`${message} ${JSON.stringify(details)}`) },
  })
  const { gateway } = started
  const session = gateway.open(sessionRequest({ rollout: 'r' }))
  const { apiKey } = session.endpoint('agent')
  const closed = gateway.open(sessionRequest({ rollout: 'closed' }))
  const closedKey = closed.endpoint('agent').apiKey
  await closed.close()
  const [name, mac] = [apiKey.slice(0, apiKey.lastIndexOf('.')), apiKey.slice(apiKey.lastIndexOf('.') + 1)]
  const capabilities = [
    'x',
    '.',
    '...',
    closedKey,
    `${name}.`,
    `${name}.${mac.slice(0, -1)}`,
    `${name}.${mac}x`,
    `${name}.${mac}=`,
    `${name}.${mac}!`,
    `${name}.${mac.slice(0, 5)}~${mac.slice(5)}`,
    `${name}.${Buffer.alloc(16).toString('base64url')}`,
    `${name}.${mac.split('').reverse().join('')}`,
    `${apiKey.replace('.0.', '.1.')}`,
    `%2e%2e/${apiKey}`,
    '__proto__',
    'constructor.0.agent.AAAAAAAAAAAAAAAAAAAAAA',
    'a'.repeat(10_000),
  ]
  const ofOneAnswer = /^(?:Date|x-request-id): .*$/gm
  const answers = new Set<string>()
  for (const capability of capabilities) {
    for (const body of ['', whole]) {
      const { received, socket } = talk(gateway.url, rawPost(`/r/${capability}/v1/chat/completions`, body))
      await until(() => received().endsWith('}'))
      answers.add(received().replace(ofOneAnswer, ''))
      const key = talk(gateway.url, rawPost('/v1/chat/completions', body, [`authorization: Bearer ${capability}`]))
      await until(() => key.received().endsWith('}'))
      answers.add(key.received().replace(ofOneAnswer, ''))
      for (const each of [socket, key.socket]) each.destroy()
    }
  }
  expect([...answers]).toHaveLength(1)
  expect([...answers][0]).toMatch(/^HTTP\/1\.1 404 /)
  expect(await refusedBy(started, 'unknown-url')).toBe(capabilities.length * 4)
  expect(gateway.counts()).toMatchObject({ calls: 0, failures: 0, inFlight: 0 })
  expect(warnings).toEqual([])
})

test('what is logged of a failing call names its rollout, and never its capability', async () => {
  const warnings: string[] = []
  await using started = await startGateway({
    say: () => ({ text: 'half', error: new Error('lost the replica') }),
    logger: { warn: (message, details) => void warnings.push(`${message} ${JSON.stringify(details)}`) },
  })
  const endpoint = started.gateway.open(sessionRequest({ rollout: 'named' })).endpoint('agent')
  await post(endpoint, { messages: [user] })
  expect(warnings).toEqual([expect.stringMatching(/lost the replica .*"rollout":"named"/)])
  expect(warnings[0]).not.toContain(endpoint.apiKey)
  expect(warnings[0]).not.toContain(endpoint.apiKey.slice(endpoint.apiKey.lastIndexOf('.') + 1))
})
