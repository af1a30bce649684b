import { expect, test } from 'vitest'
import { openFrozen } from '../testing/open-frozen.ts'
import { post } from '../testing/start-gateway.ts'
import { say, type ThirdPartyCall } from '../testing/third-party.ts'

const yes = (...[call, response]: Parameters<Parameters<typeof openFrozen>[0]['answer']>) => say(call, response, 'Yes.')
const evaluated = { evaluated: true }

test('calls of an evaluated model are turns, and parallel ones do not pass maxTurns', async () => {
  await using opened = await openFrozen({ answer: yes, route: evaluated, session: { maxTurns: 3 } })
  const statuses = (await Promise.all(Array.from({ length: 8 }, () => opened.ask()))).map(({ status }) => status)
  expect(statuses.sort()).toEqual([200, 200, 200, 400, 400, 400, 400, 400])
  expect(opened.party.calls).toHaveLength(3)
  expect(opened.session.failure()).toMatchObject({ code: 'AGENT_LIMIT', details: { stopReason: 'turn-limit' } })
})

test('calls of a model that is not evaluated are no turns', async () => {
  await using opened = await openFrozen({ answer: yes, session: { maxTurns: 3 } })
  for (let call = 0; call < 8; call++) expect((await opened.ask()).status).toBe(200)
  expect(opened.session.failure()).toBeNull()
})

test('a call that fails takes no turn', async () => {
  await using opened = await openFrozen({
    answer: (call, response, index) => (index === 0 ? response.writeHead(500).end('oops') : yes(call, response, index)),
    route: evaluated,
    session: { maxTurns: 2 },
  })
  const statuses: number[] = []
  for (let call = 0; call < 4; call++) statuses.push((await opened.ask()).status)
  expect(statuses).toEqual([502, 200, 200, 400])
})

test('the answer that passes maxSessionTokens ends the rollout, and later calls are refused', async () => {
  // Each answer reports ten tokens.
  await using opened = await openFrozen({ answer: yes, route: evaluated, session: { maxSessionTokens: 15 } })
  expect((await opened.ask()).status).toBe(200)
  expect(opened.session.failure()).toBeNull()
  expect((await opened.ask()).status).toBe(200)
  expect(opened.session.failure()).toMatchObject({ code: 'AGENT_LIMIT', details: { stopReason: 'token-limit' } })
  expect((await opened.ask()).json().error.code).toBe('limit_reached')
  expect(opened.party.calls).toHaveLength(2)
})

test.each([
  ['vLLM and OpenAI', "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens."],
  ['OpenAI Responses', 'Your input exceeds the context window of this model. Please adjust your input and try again.'],
  ['Anthropic', 'prompt is too long: 213246 tokens > 200000 maximum'],
  ['Gemini', 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).'],
  ['llama.cpp', 'the request exceeds the available context size, try increasing it'],
])('a conversation that the context of %s does not hold ends the rollout as such', async (_server, message) => {
  const refuse = (_call: ThirdPartyCall, response: Parameters<typeof yes>[1]) =>
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message } }))
  await using opened = await openFrozen({ answer: refuse, route: evaluated })
  const { status, json } = await opened.ask()
  expect([status, json().error.code]).toEqual([400, 'context_length_exceeded'])
  expect(opened.session.failure()).toMatchObject({ code: 'POLICY_CONTEXT_OVERFLOW', details: { stopReason: 'context-overflow' } })
  // A judge whose context is full has failed; the conversation of the policy goes on.
  await using judge = await openFrozen({ answer: refuse })
  await judge.ask()
  expect(judge.session.failure()).toMatchObject({ code: 'FROZEN_MODEL_FAILED' })
})

test('an agent that is declared trainable may have an evaluated model; its record says that nothing of it is trained', async () => {
  await using opened = await openFrozen({ answer: yes, route: evaluated, session: { agents: [{ name: 'agent', trainable: true }] } })
  const second = opened.open({ rollout: 'second', agents: [{ name: 'agent', trainable: true, model: 'solver' }] })
  await post(second.endpoint('agent'), { messages: [{ role: 'user', content: 'x' }] })
  expect(await second.close()).toMatchObject([{ trainable: false, turns: [{ index: 0 }] }])
})
