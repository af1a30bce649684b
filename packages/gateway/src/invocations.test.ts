import { expect, test } from 'vitest'
import { openaiClient, post, sessionRequest, startGateway } from './testing/start-gateway.ts'

const messages = [{ role: 'user' as const, content: 'Go on.' }]
const at = ({ baseUrl, ...endpoint }: { baseUrl: string; apiKey: string; model: string }, place: string) => ({
  ...endpoint,
  baseUrl: baseUrl.replace(/\/v1$/, `/~${place}/v1`),
})
const agents = ['the planner', 'reader'].map((name) => ({ name, trainable: true }))

test('each place under the URL of an agent is an invocation with turns, ids and random numbers of its own', async () => {
  await using started = await startGateway({ say: ({ random }) => `${random.task}#${random.turn}` })
  const session = started.gateway.open(sessionRequest({ agents }))
  const reader = session.endpoint('reader')
  const places = ['', '0.0.10', '0.0.2', '2']
  const ask = async (place: string) => {
    const client = openaiClient(place === '' ? reader : at(reader, place)).chat.completions
    const first = await client.create({ model: 'any', messages })
    const history = [...messages, first.choices[0]!.message, { role: 'user' as const, content: 'And?' }]
    return [first, await client.create({ model: 'any', messages: history })]
  }
  const answers = (await Promise.all(places.map(ask))).flat()
  expect(new Set(answers.map(({ id }) => id)).size).toBe(8)
  const trajectories = await session.close()
  expect(trajectories.map(({ id, agent, turns }) => [id, agent, turns.map(({ parent }) => parent)])).toEqual([
    ['the planner', 'the planner', []],
    ['reader', 'reader', [null, 0]],
    ['reader:2', 'reader', [null, 0]],
    ['reader:the planner.0.2', 'reader', [null, 0]],
    ['reader:the planner.0.10', 'reader', [null, 0]],
  ])
  for (const { id, turns } of trajectories.slice(1)) {
    expect(turns.map(({ trajectory }) => trajectory)).toEqual([id, id])
    expect(turns.map(({ branchReasons }) => branchReasons)).toEqual([['root'], []])
    expect(turns.map(({ message }) => message.content)).toEqual([0, 1].map((turn) => `task-1\n${id}#${turn}`))
  }
  expect(new Set(started.engine.requests.map(({ affinity }) => affinity)).size).toBe(4)
  expect(started.engine.requests.every(({ origin }) => origin?.agent === 'reader')).toBe(true)
})

test('what is no place is refused with what a place is, and an invocation after the attempt like any unknown URL', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const session = started.gateway.open(sessionRequest())
  const endpoint = session.endpoint('agent')
  const refusal = {
    error: {
      message: expect.stringContaining('1 to 256 letters, digits'),
      type: 'invalid_request_error',
      code: expect.any(String),
      param: null,
    },
  }
  for (const place of ['', 'x'.repeat(257), '%2F', 'a%20b', 'é']) {
    const answer = await post(at(endpoint, place), { messages })
    expect([place, answer.status, answer.json()]).toEqual([place, 400, refusal])
  }
  expect((await post(at(endpoint, '1/2'), { messages })).status).toBe(404)
  expect((await post(at(endpoint, 'x'.repeat(256)), { messages })).status).toBe(200)
  await session.close()
  const unknown = await post(endpoint, { messages })
  const late = await post(at(endpoint, '2'), { messages })
  expect([late.status, late.text]).toEqual([404, unknown.text])
})

test('one attempt has at most 1,024 invocations, and the next one is a limit', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const session = started.gateway.open(sessionRequest())
  const endpoint = session.endpoint('agent')
  for (let start = 2; start <= 1024; start += 93)
    await Promise.all(
      Array.from({ length: Math.min(93, 1025 - start) }, async (_, i) =>
        expect((await post(at(endpoint, `${start + i}`), { messages })).status).toBe(200),
      ),
    )
  const refused = await post(at(endpoint, '1025'), { messages })
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('has 1024 invocations of agents, which is the most')])
  expect(session.failure()).toMatchObject({ code: 'AGENT_LIMIT', details: { stopReason: 'turn-limit' } })
  expect((await post(at(endpoint, '7'), { messages })).status).toBe(200)
  expect(await session.close()).toHaveLength(1024)
})

test('a place whose id is the name of another agent is refused, and a look at a place makes no invocation', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const two = ['reader', 'reader:2'].map((name) => ({ name, trainable: true }))
  const session = started.gateway.open(sessionRequest({ agents: two }))
  const refused = await post(at(session.endpoint('reader'), '2'), { messages })
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('has the id of another agent')])
  expect((await fetch(`${at(session.endpoint('reader'), '3').baseUrl}/nothing`)).status).toBe(404)
  expect((await session.close()).map(({ id }) => id)).toEqual(['reader', 'reader:2'])
})
