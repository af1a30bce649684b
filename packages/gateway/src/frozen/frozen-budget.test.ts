import type { SessionRequest } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { createGateway, type FrozenRoute } from '../index.ts'
import { post, sessionRequest, until } from '../testing/start-gateway.ts'
import { say, startThirdParty } from '../testing/third-party.ts'

const messages = [{ role: 'user', content: 'Is 79 right?' }]

/** A third party whose answers wait until they are released. Each reports 100 prompt and 10 completion tokens. */
async function openJudge(limits: Partial<SessionRequest>, dialect: FrozenRoute['dialect'] = 'chat-completions') {
  const pending: (() => void)[] = []
  const party = await startThirdParty((call, response) => void pending.push(() => say(call, response, 'ok')))
  const judge: FrozenRoute = { kind: 'frozen', baseUrl: party.url, dialect, model: 'large', price: { input: 10, output: 1000 } }
  const gateway = await createGateway({ models: { judge }, seed: 1 })
  const session = gateway.open(sessionRequest({ agents: [{ name: 'agent', trainable: false, model: 'judge' }], ...limits }))
  return {
    pending,
    session,
    ask: (more: object = {}) => post(session.endpoint('agent'), { messages, ...more }),
    async [Symbol.asyncDispose]() {
      await gateway.close()
      await party[Symbol.asyncDispose]()
    },
  }
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 60))
const spent = (calls: number) => calls * (100 * 10 + 10 * 1000) * 1e-6

test('parallel calls do not pass maxCost: each holds the price of its prompt and of all it may be answered', async () => {
  // A call costs 0.011. A call with max_tokens 20 reserves a little more than 0.02.
  await using judge = await openJudge({ maxCost: 0.05 })
  const calls = Array.from({ length: 10 }, () => judge.ask({ max_tokens: 20 }))
  const letThrough = async (count: number) => {
    await until(() => judge.pending.length === count)
    await settled()
    expect(judge.pending).toHaveLength(count)
  }
  await letThrough(2)
  for (const answer of judge.pending) answer()
  await letThrough(3)
  judge.pending[2]!()
  await letThrough(4)
  judge.pending[3]!()
  await letThrough(5)
  judge.pending[4]!()
  const statuses = (await Promise.all(calls)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(5)
  expect(statuses.filter((status) => status === 400)).toHaveLength(5)
  expect(judge.session.failure()).toMatchObject({ code: 'AGENT_LIMIT', details: { stopReason: 'cost-limit' } })
  const [trajectory] = await judge.session.close()
  expect(trajectory!.turns.reduce((sum, { cost = 0 }) => sum + cost, 0)).toBeCloseTo(spent(5), 9)
})

test('parallel calls do not pass maxFrozenTokens; one without a limit of its own is reckoned with 4,096 tokens', async () => {
  await using judge = await openJudge({ maxFrozenTokens: 5_000 })
  const calls = [judge.ask(), judge.ask(), judge.ask({ max_completion_tokens: 500, n: 2 })]
  await until(() => judge.pending.length === 1)
  await settled()
  expect(judge.pending).toHaveLength(1)
  judge.pending[0]!()
  await until(() => judge.pending.length === 2)
  await settled()
  expect(judge.pending).toHaveLength(2)
  judge.pending[1]!()
  await until(() => judge.pending.length === 3)
  judge.pending[2]!()
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200])
  expect(judge.session.failure()).toBeNull()
})

test('a call that waits ends with its client, which pays nothing, and one that fails gives back what it held', async () => {
  await using judge = await openJudge({ maxCost: 0.02 })
  const first = judge.ask({ max_tokens: 20 })
  await until(() => judge.pending.length === 1)
  const abort = new AbortController()
  const left = post(judge.session.endpoint('agent'), { messages }, { signal: abort.signal })
  await settled()
  abort.abort()
  await expect(left).rejects.toThrow()
  judge.pending[0]!()
  expect((await first).status).toBe(200)
  const second = judge.ask({ max_tokens: 20 })
  await until(() => judge.pending.length === 2)
  judge.pending[1]!()
  expect((await second).status).toBe(200)
  expect((await judge.ask()).status).toBe(400)
  const [trajectory] = await judge.session.close()
  expect(trajectory!.turns).toHaveLength(2)
})

test('what a stream had said is paid for where its client leaves in the middle', async () => {
  for (const [limit, status] of [
    [140, 200],
    [100, 400],
  ] as const) {
    const party = await startThirdParty((call, response, index) => {
      if (index > 0) return say(call, response, 'ok')
      const chunk = { choices: [{ index: 0, delta: { content: 'x'.repeat(400) }, finish_reason: null }] }
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${JSON.stringify(chunk)}\n\n`)
    })
    const judge: FrozenRoute = { kind: 'frozen', baseUrl: party.url, dialect: 'chat-completions', model: 'large' }
    const gateway = await createGateway({ models: { judge }, seed: 1 })
    const session = gateway.open(sessionRequest({ agents: [{ name: 'agent', trainable: false, model: 'judge' }], maxFrozenTokens: limit }))
    const abort = new AbortController()
    const init = { method: 'POST', body: JSON.stringify({ messages, stream: true }), signal: abort.signal }
    const { body } = await fetch(`${session.endpoint('agent').baseUrl}/chat/completions`, init)
    expect((await body!.getReader().read()).value!.length).toBeGreaterThan(400)
    abort.abort()
    await until(() => party.aborted() === 1)
    expect([limit, (await post(session.endpoint('agent'), { messages })).status]).toEqual([limit, status])
    await gateway.close()
    await party[Symbol.asyncDispose]()
  }
})

test('without a budget no call waits', async () => {
  await using judge = await openJudge({})
  const calls = Array.from({ length: 20 }, () => judge.ask())
  await until(() => judge.pending.length === 20)
  for (const answer of judge.pending) answer()
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(20).fill(200))
})

test('fields that a third party had stand in the turn as they were written', async () => {
  await using judge = await openJudge({})
  const calls = [judge.ask({ x_new: { b: [1.5] }, seed: 4 }), judge.ask()]
  await until(() => judge.pending.length === 2)
  for (const answer of judge.pending) answer()
  await Promise.all(calls)
  const [trajectory] = await judge.session.close()
  expect(trajectory!.turns.map(({ unusedFields }) => unusedFields)).toEqual(
    expect.arrayContaining([{ x_new: '{"b":[1.5]}', seed: '4' }, undefined]),
  )
})
