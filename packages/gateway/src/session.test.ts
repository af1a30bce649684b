import { request as httpRequest } from 'node:http'
import { expect, test } from 'vitest'
import { openaiClient, post, sessionRequest, startGateway, until } from './testing/start-gateway.ts'

const slow = { text: 'a long answer that takes its time', pieceDelayMs: 5 }
const messages = [{ role: 'user' as const, content: 'Go on.' }]

test('a closed URL, a forged one and an unknown one give the same answer', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  const closed = session.endpoint('agent')
  await session.close()
  const open = gateway.open(sessionRequest({ rollout: 'rollout-2' })).endpoint('agent')
  const replaced = (from: string | RegExp, to: string) => ({ ...open, baseUrl: open.baseUrl.replace(from, to) })
  const lastOfMac = open.baseUrl.at(-4)!
  const urls = {
    closed,
    unknown: replaced('rollout-2', 'rollout-3'),
    attempt: replaced('-2.0.', '-2.1.'),
    agent: replaced('.agent.', '.other.'),
    mac: replaced(/.\/v1$/, `${lastOfMac === 'A' ? 'Q' : 'A'}/v1`),
    'mac of another': { ...open, baseUrl: open.baseUrl.replace(/\.[^.]+\/v1$/, `.${closed.apiKey.split('.').at(-1)}/v1`) },
    'no mac': replaced(/\.[^./]+\/v1$/, '/v1'),
    empty: replaced(/\/r\/.*$/, '/r//v1'),
    prototype: replaced(/\/r\/.*$/, '/r/__proto__.0.constructor.AAAA/v1'),
  }
  const answers = await Promise.all(Object.values(urls).map((endpoint) => post(endpoint, { messages })))
  for (const answer of answers) {
    expect(answer.status).toBe(404)
    expect(answer.text).toBe(answers[0]!.text)
  }
  expect(answers[0]!.json()).toEqual({
    error: {
      message: expect.stringMatching(/^No agent is served under this URL.*"aworld-train serve" prints it/),
      type: 'invalid_request_error',
      param: null,
      code: 'not_found',
    },
  })
  expect(engine.requests.length).toBe(0)
  expect((await post(open, { messages })).status).toBe(200)
})

test('the same attempt opened again has another URL', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const first = started.gateway.open(sessionRequest())
  const old = first.endpoint('agent')
  expect(() => started.gateway.open(sessionRequest())).toThrow('is open already')
  await first.close()
  const second = started.gateway.open(sessionRequest())
  expect((await post(old, { messages })).status).toBe(404)
  expect((await post(second.endpoint('agent'), { messages })).status).toBe(200)
})

test('rollouts, attempts and agents never share a record, whatever their names', async () => {
  const texts: string[] = []
  await using started = await startGateway({
    say(_, call) {
      texts.push(`answer ${call}`)
      return texts[call]!
    },
  })
  const names = ['a', 'a.0', 'a/0', 'ä ö', '', '~YQ', '%2e%2e', '..', 'a'.repeat(200)]
  const sessions = names.flatMap((rollout) =>
    [0, 1].map((attempt) =>
      started.gateway.open(
        sessionRequest({
          rollout,
          attempt,
          agents: [
            { name: 'one', trainable: true },
            { name: 'o.n/e', trainable: false },
          ],
        }),
      ),
    ),
  )
  const urls = sessions.flatMap((session) => [session.endpoint('one').baseUrl, session.endpoint('o.n/e').baseUrl])
  expect(new Set(urls).size).toBe(names.length * 4)
  const answers = await Promise.all(
    sessions.map(async (session) => {
      const client = openaiClient(session.endpoint('o.n/e'))
      const completion = await client.chat.completions.create({ model: 'any', messages })
      return completion.choices[0]!.message.content
    }),
  )
  const records = await Promise.all(sessions.map((session) => session.close()))
  for (const [index, trajectories] of records.entries()) {
    expect(trajectories.map(({ agent, trainable, turns }) => [agent, trainable, turns.length])).toEqual([
      ['one', true, 0],
      ['o.n/e', false, 1],
    ])
    expect(trajectories[1]!.turns[0]!.message.content).toBe(answers[index])
  }
  expect(new Set(answers).size).toBe(sessions.length)
})

test('the capability may ride in the key', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const session = started.gateway.open(sessionRequest())
  const { apiKey, model } = session.endpoint('agent')
  const client = openaiClient({ baseUrl: `${started.gateway.url}/v1`, apiKey, model })
  await client.chat.completions.create({ model, messages })
  expect(session.trajectories()[0]!.turns.length).toBe(1)
  const stranger = openaiClient({ baseUrl: `${started.gateway.url}/v1`, apiKey: 'sk-any', model })
  await expect(stranger.chat.completions.create({ model, messages })).rejects.toMatchObject({ status: 404 })
})

test('close aborts what is in flight, keeps its tokens, and answers it as an unknown URL', async () => {
  await using started = await startGateway({ say: () => slow })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  const endpoint = session.endpoint('agent')
  const call = post(endpoint, { messages })
  await until(() => engine.sampledTokens() >= 3)
  const trajectories = await session.close()
  expect((await call).status).toBe(404)
  expect(engine.inFlight()).toBe(0)
  const turns = trajectories[0]!.turns
  expect(turns).toMatchObject([{ delivered: 'abandoned', finishReason: { unified: 'aborted', raw: 'session-closed' } }])
  expect(turns[0]!.completionTokenIds.length).toBe(engine.sampledTokens())
  expect(await session.close()).toBe(trajectories)
  expect((await post(endpoint, { messages })).status).toBe(404)
})

test('a close while a call is held by a pause ends the call without sampling', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  await gateway.pause({ drain: false })
  const call = post(session.endpoint('agent'), { messages })
  await until(() => gateway.counts().calls === 1)
  expect((await session.close())[0]!.turns).toEqual([])
  expect((await call).status).toBe(404)
  gateway.resume()
  expect(engine.requests.length).toBe(0)
})

test('an engine that ignores the abort does not hold the close', async () => {
  const never = Promise.withResolvers<void>()
  await using started = await startGateway({
    say: () => ({ text: 'stuck', beforeToken: () => never.promise }),
    limits: { abortGraceMs: 50 },
  })
  const session = started.gateway.open(sessionRequest())
  const call = post(session.endpoint('agent'), { messages })
  await until(() => started.engine.inFlight() === 1)
  expect((await session.close())[0]!.turns).toEqual([])
  expect((await call).status).toBe(404)
  expect(started.gateway.counts().inFlight).toBe(0)
  never.resolve()
})

test('a call whose body comes after the close is not served', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const session = started.gateway.open(sessionRequest())
  const body = JSON.stringify({ messages })
  const answer = Promise.withResolvers<number | undefined>()
  const request = httpRequest(`${session.endpoint('agent').baseUrl}/chat/completions`, { method: 'POST' }, (response) => {
    answer.resolve(response.resume().statusCode)
  })
  request.on('error', answer.reject)
  request.write(body.slice(0, 5))
  // By the time that another call has made its way through, headers and first bytes have arrived.
  await post(session.endpoint('agent'), { messages })
  await session.close()
  request.end(body.slice(5))
  expect(await answer.promise).toBe(404)
  expect(started.engine.requests.length).toBe(1)
})

test('a thousand calls of two hundred rollouts at once each reach their own record', async () => {
  await using started = await startGateway({
    say: ({ promptTokenIds }) => ({ text: /I am (\d+)/.exec(started.chat.decode(promptTokenIds))![0], pieceDelayMs: 0, pieceSize: 4 }),
  })
  const { gateway, engine } = started
  const sessions = Array.from({ length: 200 }, (_, index) => gateway.open(sessionRequest({ rollout: `r${index}` })))
  const records = await Promise.all(
    sessions.map(async (session, index) => {
      const body = { messages: [{ role: 'user', content: `I am ${index}.` }] }
      const answers = await Promise.all(Array.from({ length: 5 }, () => post(session.endpoint('agent'), body)))
      for (const { json } of answers) expect(json().choices[0].message.content).toBe(`I am ${index}`)
      return session.close()
    }),
  )
  const turns = records.flatMap((trajectories) => trajectories[0]!.turns)
  expect(turns.length).toBe(1000)
  expect(turns.every(({ delivered }) => delivered === 'delivered')).toBe(true)
  expect(turns.reduce((sum, turn) => sum + turn.completionTokenIds.length, 0)).toBe(engine.sampledTokens())
  expect(gateway.counts()).toMatchObject({ calls: 1000, failures: 0, inFlight: 0 })
})

test('an agent that was not declared has no endpoint', async () => {
  await using started = await startGateway({ say: [] })
  const session = started.gateway.open(sessionRequest())
  expect(() => session.endpoint('other')).toThrow('declared are: agent')
})
