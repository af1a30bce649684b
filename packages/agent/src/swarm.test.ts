import { expect, test } from 'vitest'
import { z } from 'zod'
import { Agent } from './agent.ts'
import { toAgentProgram } from './agent-program.ts'
import { runOnce } from './run-once.test-support.ts'
import { createScriptedServer } from './scripted-server.test-support.ts'
import { Swarm } from './swarm.ts'
import { tool } from './tool.ts'

test('each agent gets the previous answer, and what started each is recorded', async () => {
  await using server = await createScriptedServer([{ content: 'plan' }, { content: 'work' }, { content: 'summary' }])
  const [planner, worker, writer] = ['planner', 'worker', 'writer'].map((name) => new Agent({ name, systemPrompt: `You are the ${name}.` }))
  const result = await runOnce(new Swarm(planner!, worker!, writer!), { baseUrl: server.baseUrl })
  expect(result.answer).toBe('summary')
  expect(result.invocations).toMatchObject([
    { id: 'planner', startedBy: [], answered: true },
    { id: 'worker', startedBy: [{ trajectory: 'planner', toolCall: null }], answered: true },
    { id: 'writer', startedBy: [{ trajectory: 'worker', toolCall: null }], answered: true },
  ])
  expect(server.requests.map(({ body }) => body.messages.map(({ content }) => content))).toEqual([
    ['You are the planner.', 'What is 1 + 2?'],
    ['You are the worker.', 'plan'],
    ['You are the writer.', 'work'],
  ])
  expect(result.messages).toHaveLength(9)
})

test('an agent without an answer ends the swarm', async () => {
  await using server = await createScriptedServer(() => ({ toolCalls: [{ id: 'c', name: 'x', arguments: '' }] }))
  const swarm = new Swarm(new Agent({ name: 'first', maxTurns: 2 }), new Agent({ name: 'second' }))
  const result = await runOnce(swarm, { baseUrl: server.baseUrl })
  expect(result).toMatchObject({ answer: null, stopped: 'turn-limit', invocations: [{ id: 'first', answered: false }] })
  expect(server.requests).toHaveLength(2)
})

test('the turns of all agents count against the limit of the rollout', async () => {
  await using server = await createScriptedServer(() => ({ content: 'go on' }))
  const swarm = new Swarm(new Agent({ name: 'a' }), new Agent({ name: 'b' }), new Agent({ name: 'c' }))
  const result = await runOnce(swarm, { baseUrl: server.baseUrl, limits: { maxTurns: 2 } })
  expect(result).toMatchObject({ answer: null, stopped: 'turn-limit' })
  expect(server.requests).toHaveLength(2)
})

test('frozen agents keep their own endpoint, trained ones use the policy', async () => {
  await using policy = await createScriptedServer([{ content: 'from the policy' }])
  await using other = await createScriptedServer([{ content: 'from elsewhere' }])
  const frozen = new Agent({
    name: 'frozen',
    conf: {
      llm_base_url: `${other.baseUrl}/`,
      llm_model_name: 'gpt-x',
      llm_api_key: 'sk-1',
      llm_temperature: 0.5,
      top_k: 3,
      params: { user: 'u' },
    },
  })
  const swarm = new Swarm(new Agent({ name: 'trained', conf: { llmProvider: 'policy' } }), frozen)
  expect(toAgentProgram(swarm).agents).toMatchObject([
    { name: 'trained', trainable: true },
    { name: 'frozen', trainable: false },
  ])
  const result = await runOnce(swarm, { baseUrl: policy.baseUrl })
  expect(result.answer).toBe('from elsewhere')
  expect(policy.requests[0]!.body.model).toBe('policy-model')
  expect(other.requests[0]!.headers.authorization).toBe('Bearer sk-1')
  expect(other.requests[0]!.body).toMatchObject({ model: 'gpt-x', temperature: 0.5, top_k: 3, user: 'u' })
})

test('an agent that uses the address of the policy is trained', async () => {
  await using server = await createScriptedServer([{ content: 'hi' }])
  const agent = new Agent({ conf: { llmBaseUrl: 'http://policy.invalid/v1', llmModelName: 'whatever' } })
  const policyBaseUrls = ['http://policy.invalid/v1/']
  expect(toAgentProgram(agent, { policyBaseUrls }).agents).toMatchObject([{ name: 'agent', trainable: true }])
  expect(toAgentProgram(agent).agents).toMatchObject([{ trainable: false }])
  expect((await runOnce(agent, { baseUrl: server.baseUrl, policyBaseUrls })).answer).toBe('hi')
})

test('an agent calls another as a tool', async () => {
  await using server = await createScriptedServer(({ body }) => {
    const system = body.messages[0]!['content']
    if (system === 'You calculate.') return { content: '42' }
    if (body.messages.length === 2) return { toolCalls: [{ id: 'c1', name: 'the_calculator', arguments: '{"content":"6 * 7"}' }] }
    return { content: 'It is 42.' }
  })
  const calculator = new Agent({ name: 'the calculator', desc: 'Calculates.', systemPrompt: 'You calculate.' })
  const boss = new Agent({ name: 'boss', systemPrompt: 'You ask.', agents: [calculator] })
  expect(toAgentProgram(boss).agents.map(({ name }) => name)).toEqual(['boss', 'the calculator'])
  const result = await runOnce(boss, { baseUrl: server.baseUrl })
  expect(result.answer).toBe('It is 42.')
  expect(result.invocations.map(({ id, startedBy }) => [id, startedBy])).toEqual([
    ['boss', []],
    ['the calculator:boss.0.0', [{ trajectory: 'boss', toolCall: expect.any(String) }]],
  ])
  expect(result.toolCalls).toMatchObject([{ agent: 'boss', name: 'the_calculator', content: '42', isError: false }])
  expect(server.requests[0]!.body.tools).toMatchObject([{ function: { name: 'the_calculator', description: 'Calculates.' } }])
  expect(server.requests[1]!.body.messages).toEqual([
    { role: 'system', content: 'You calculate.' },
    { role: 'user', content: '6 * 7' },
  ])
  expect(result.messages.filter(({ role }) => role === 'tool')).toMatchObject([{ content: '42', toolCallId: 'c1' }])
})

test('an agent as a tool that reaches its limit, or is asked wrongly, is an error the caller sees', async () => {
  await using server = await createScriptedServer(({ body }, index) => {
    if (body.messages[0]!['content'] === 'You loop.') return { toolCalls: [{ id: 'x', name: 'noop', arguments: '' }] }
    if (index === 0) return { toolCalls: [{ id: 'c1', name: 'helper', arguments: '{}' }] }
    if (index === 1) return { toolCalls: [{ id: 'c2', name: 'helper', arguments: '{"content":"go"}' }] }
    return { content: 'gave up' }
  })
  const noop = tool({ name: 'noop', parameters: z.object({}), execute: () => 'ok' })
  const helper = new Agent({ name: 'helper', systemPrompt: 'You loop.', maxTurns: 2, tools: [noop] })
  const result = await runOnce(new Swarm(new Agent({ name: 'boss', agentNames: ['helper'] }), { registerAgents: [helper] }), {
    baseUrl: server.baseUrl,
  })
  expect(result.answer).toBe('gave up')
  expect(result.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)).toEqual([
    'Error: "content" is missing; write what the agent is to do, as text.',
    'Error: agent "helper" stopped at its limit of turns without an answer.',
  ])
})

test('a swarm in another one brings the agents that its members may call by name', () => {
  const helper = new Agent({ name: 'helper' })
  const inner = new Swarm(new Agent({ name: 'boss', agents: ['helper'] }), { registerAgents: [helper] })
  const program = toAgentProgram(new Swarm(new Swarm(inner), new Agent({ name: 'writer' })))
  expect(program.agents.map(({ name }) => name)).toEqual(['boss', 'helper', 'writer'])
})

test('unnamed agents are numbered', () => {
  const swarm = new Swarm(new Agent(), new Agent({ name: 'planner' }), new Agent())
  expect(toAgentProgram(swarm).agents.map(({ name }) => name)).toEqual(['agent-1', 'planner', 'agent-2'])
})

test.each([
  [
    'a misspelt option',
    () => new Swarm(new Agent(), { buildtype: 'workflow' } as never),
    /unknown option "buildtype"; did you mean "buildType"/,
  ],
  [
    'equal names',
    () => new Swarm(new Agent({ name: 'a' }), new Agent({ name: ' a ' })),
    /Two agents are named "a"; give each its own name/,
  ],
  [
    'a registered agent of the name of a member',
    () => new Swarm(new Agent({ name: 'a' }), { registerAgents: [new Agent({ name: 'a' })] }),
    /Two agents are named "a"/,
  ],
  [
    'an agent that holds one of its own name',
    () => new Agent({ name: 'a', agents: [new Agent({ name: 'b', agents: [new Agent({ name: 'a' })] })] }),
    /Two agents are named "a"/,
  ],
  [
    'an unknown callee',
    () => toAgentProgram(new Swarm(new Agent({ name: 'a', agents: ['plannr'] }), new Agent({ name: 'planner' }))),
    /may call "plannr".*did you mean "planner"/,
  ],
  [
    'a circle',
    () => toAgentProgram(new Swarm(new Agent({ name: 'a', agents: ['b'] }), new Agent({ name: 'b', agents: ['a'] }))),
    /in a circle: a → b → a/,
  ],
])('refuses %s', (_, build, message) => {
  expect(build).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) }))
})
