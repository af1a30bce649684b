import { SessionRecord, type Trajectory } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { AdminTurn } from '../options.ts'
import { promptNumber } from '../random-key.ts'
import { openaiClient, post, sessionRequest, startGateway } from '../testing/start-gateway.ts'

const token = 'an-admin-token-of-some-length'
const messages = [{ role: 'user' as const, content: 'Hi.' }]

interface Opened {
  readonly id: string
  readonly expiresAt: number
  readonly agents: Readonly<Record<string, { baseUrl: string; apiKey: string; model: string }>>
}

/** The API as any program uses it. */
function api(url: string, bearer = token) {
  const headers = { authorization: `Bearer ${bearer}` }
  const ask = (method: string, path: string, body?: unknown) =>
    fetch(`${url}/v1/sessions${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  return {
    ask,
    open: async (body: unknown = {}) => (await (await ask('POST', '', body)).json()) as Opened,
    close: async (id: string) => z.decode(SessionRecord, (await (await ask('DELETE', `/${id}`)).json()) as z.input<typeof SessionRecord>),
  }
}

test('a program in any language opens a session, runs its agent, and takes the recorded tokens', async () => {
  const kept: AdminTurn[] = []
  await using started = await startGateway({ say: () => 'Fine.', admin: { token, onTurn: async (turn) => void kept.push(turn) } })
  const { open, close, ask } = api(started.gateway.url)
  const session = await open({ rollout: 'step-1/7', agents: [{ name: 'planner' }, { name: 'judge', trainable: false }], maxTurns: 2 })
  expect(Object.keys(session.agents)).toEqual(['planner', 'judge'])
  const client = openaiClient(session.agents['planner']!)
  expect((await client.chat.completions.create({ model: 'any', messages })).choices[0]!.message.content).toBe('Fine.')
  const [turn] = started.engine.requests
  expect(turn!.random).toMatchObject({ task: 'step-1/7\nplanner', turn: promptNumber(turn!.promptTokenIds, new Map()) })
  const so = z.decode(SessionRecord, (await (await ask('GET', `/${session.id}`)).json()) as z.input<typeof SessionRecord>)
  expect(so).toMatchObject({ status: 'open', trajectories: [{ turns: [{ delivered: 'delivered' }] }, { turns: [] }] })
  const record = await close(session.id)
  expect(record).toMatchObject({ status: 'closed', rollout: 'step-1/7', attempt: 0, failure: null, trajectories: [{ policy: 'tiny' }, {}] })
  const recorded = (record.trajectories as Trajectory[])[0]!.turns[0]!
  expect(recorded.promptTokenIds).toEqual(turn!.promptTokenIds)
  expect(recorded.completionTokenIds.length).toBe(started.engine.sampledTokens())
  expect(kept).toMatchObject([{ rollout: 'step-1/7', attempt: 0, agent: 'planner', turn: { index: 0 } }])
  expect(await close(session.id)).toEqual(record)
  expect((await post(session.agents['planner']!, { messages })).status).toBe(404)
})

test('maxTokens of a session is what all its calls together may sample', async () => {
  await using started = await startGateway({ say: () => 'A long answer.', admin: { token } })
  const { open, close } = api(started.gateway.url)
  const session = await open({ maxTokens: 3 })
  expect((await post(session.agents['agent']!, { messages })).status).toBe(200)
  expect(started.engine.sampledTokens()).toBe(3)
  expect((await post(session.agents['agent']!, { messages })).status).toBe(400)
  expect(await close(session.id)).toMatchObject({ failure: { code: 'AGENT_LIMIT', details: { stopReason: 'token-limit' } } })
})

test('a session that nobody closes ends by itself, and its record stays for a while', async () => {
  await using started = await startGateway({ say: () => 'Fine.', admin: { token, keptMs: 5_000 } })
  const { open, ask } = api(started.gateway.url)
  const session = await open({ timeoutMs: 3_000 })
  expect((await post(session.agents['agent']!, { messages })).status).toBe(200)
  const status = async () => {
    const answer = await ask('GET', `/${session.id}`)
    return answer.status === 200 ? ((await answer.json()) as { status: string }).status : answer.status
  }
  await expect.poll(status).toBe('expired')
  expect((await post(session.agents['agent']!, { messages })).status).toBe(404)
  await expect.poll(status).toBe(404)
})

test('only the admin token opens it: neither a capability nor a guess, and one answer for all', async () => {
  await using started = await startGateway({ say: () => 'Fine.', admin: { token } })
  const { gateway } = started
  const endpoint = gateway.open(sessionRequest()).endpoint('agent')
  const session = await api(gateway.url).open()
  const answers = new Set<string>()
  for (const bearer of ['', 'x', endpoint.apiKey, session.agents['agent']!.apiKey, token.slice(1), `${token}x`, token.toUpperCase()]) {
    for (const [method, path] of [
      ['POST', ''],
      ['GET', `/${session.id}`],
      ['DELETE', `/${session.id}`],
      ['GET', '/nothing'],
    ] as const) {
      const answer = await api(gateway.url, bearer).ask(method, path)
      answers.add(`${answer.status} ${await answer.text()}`)
    }
  }
  expect([...answers]).toHaveLength(1)
  expect([...answers][0]).toMatch(/^401 .*admin token is missing or wrong/)
  const throughCapability = await fetch(`${endpoint.baseUrl}/sessions`, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  expect(throughCapability.status).toBe(404)
  expect(await gateway.metrics()).toContain('refused_total{reason="unauthorized"} 28\n')
})

test('without an admin token there are no sessions over HTTP', async () => {
  await using started = await startGateway({ say: [] })
  const { gateway } = started
  const answer = await api(gateway.url).ask('POST', '', {})
  const unknown = await fetch(`${gateway.url}/r/unknown/v1/models`)
  expect([answer.status, await answer.text()]).toEqual([404, await unknown.text()])
  await expect(startGateway({ say: [], admin: { token: 'short' } })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
})

test('what is wrong with a session is said; too many are refused for a while', async () => {
  await using started = await startGateway({ say: [], admin: { token, maxSessions: 2 } })
  const { gateway } = started
  const { ask, open } = api(gateway.url)
  const failure = async (answer: Response) => [answer.status, ((await answer.json()) as { error: { message: string } }).error.message]
  expect(await failure(await ask('POST', '', '{'))).toEqual([400, expect.stringMatching(/not valid JSON/)])
  expect(await failure(await ask('POST', '', { agent: [] }))).toEqual([400, expect.stringMatching(/agent/)])
  expect(await failure(await ask('POST', '', { sampling: { maxTokens: 0 } }))).toEqual([400, expect.stringMatching(/sampling.maxTokens/)])
  const twice = await ask('POST', '', { agents: [{ name: 'solver' }, { name: 'judge' }, { name: 'solver' }] })
  expect([twice.status, await twice.json()]).toMatchObject([
    400,
    { error: { param: 'agents.2.name', message: 'Two agents are named "solver"; give each its own name.' } },
  ])
  expect(await failure(await ask('PUT', '', {}))).toEqual([405, expect.stringMatching(/answers POST, not PUT/)])
  expect(await failure(await ask('GET', '/nothing'))).toEqual([404, expect.stringMatching(/no such session/)])
  await open({ rollout: 'a' })
  expect(await failure(await ask('POST', '', { rollout: 'a' }))).toEqual([400, expect.stringMatching(/is open already/)])
  await open({ rollout: 'b' })
  expect((await ask('POST', '', {})).status).toBe(503)
})

test('agents are given the public URL, where there is one', async () => {
  await using started = await startGateway({ say: [], admin: { token }, publicUrl: 'https://gateway.example:8443' })
  const { gateway } = started
  expect(gateway.url).toBe('https://gateway.example:8443')
  const { baseUrl, apiKey } = gateway.open(sessionRequest()).endpoint('agent')
  expect(baseUrl).toBe(`https://gateway.example:8443/r/${apiKey}/v1`)
})

test('sessions that have ended take no place; where none is free, the time at which one surely is', async () => {
  await using started = await startGateway({ say: [], admin: { token, maxSessions: 2 } })
  const { ask, open, close } = api(started.gateway.url)
  for (let index = 0; index < 5; index++) await close((await open()).id)
  await open({ timeoutMs: 3_600_000 })
  const { id } = await open({ timeoutMs: 900_000 })
  const full = await ask('POST', '', {})
  expect(full.status).toBe(503)
  expect(Number(full.headers.get('retry-after'))).toBeGreaterThan(800)
  expect(Number(full.headers.get('retry-after'))).toBeLessThanOrEqual(900)
  expect(await full.text()).toMatch(
    /2 sessions are open, which is maxSessions; close those that are done with DELETE.*ends by itself in \d+ s/,
  )
  await close(id)
  expect((await ask('POST', '', {})).status).toBe(201)
})

test('records of sessions that have ended are bounded in bytes: the oldest makes room, and says so', async () => {
  await using started = await startGateway({ say: () => 'Fine.', admin: { token, maxKeptBytes: 5_000 } })
  const { ask, open } = api(started.gateway.url)
  const ended: { id: string; record: string }[] = []
  for (let index = 0; index < 8; index++) {
    const { id, agents } = await open()
    await post(agents['agent']!, { messages })
    ended.push({ id, record: await (await ask('DELETE', `/${id}`)).text() })
  }
  const size = ended[0]!.record.length
  const answers = await Promise.all(ended.map(async ({ id }) => (await ask('GET', `/${id}`)).status))
  expect(answers).toEqual(ended.map((_, index) => (index < ended.length - Math.floor(5_000 / size) ? 404 : 200)))
  expect(await (await ask('DELETE', `/${ended.at(-1)!.id}`)).text()).toBe(ended.at(-1)!.record)
  expect(await (await ask('GET', `/${ended[0]!.id}`)).text()).toMatch(/newer ones took its room, which is 5000 bytes \(maxKeptBytes\)/)
  expect(await (await ask('GET', '/nothing')).text()).toMatch(/never opened/)
})
