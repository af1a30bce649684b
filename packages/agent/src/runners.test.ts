import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { Agent } from './agent.ts'
import { RunConfig } from './run-config.ts'
import { inProcessEnvironment } from './run-once.test-support.ts'
import { createRunners, Runners } from './runners.ts'
import { createScriptedServer, type SeenRequest } from './scripted-server.test-support.ts'
import { Swarm } from './swarm.ts'
import { Task } from './task.ts'
import { tool } from './tool.ts'

const agentAt = (baseUrl: string, more = {}) => new Agent({ name: 'solver', conf: { llmBaseUrl: baseUrl, llmModelName: 'm' }, ...more })

const question = ({ body }: SeenRequest) => String(body.messages.at(-1)!['content'])

test('asks an agent at its own endpoint', async () => {
  await using server = await createScriptedServer([{ toolCalls: [{ id: 'c', name: 'add', arguments: '{"a":1,"b":2}' }] }, { content: '3' }])
  const add = tool({ name: 'add', parameters: z.object({ a: z.number(), b: z.number() }), execute: ({ a, b }) => a + b })
  const response = await Runners.run('What is 1 + 2?', agentAt(server.baseUrl, { tools: [add] }))
  expect(response).toMatchObject({
    answer: '3',
    success: true,
    status: 'success',
    msg: '',
    error: null,
    usage: { promptTokens: 20, completionTokens: 10 },
    toolCalls: [{ name: 'add', content: '3' }],
  })
  expect(response.timeCost).toBeGreaterThan(0)
  expect(response.messages).toHaveLength(4)
})

test('takes a task, a swarm, and the names of Python', async () => {
  await using server = await createScriptedServer((request) => ({ content: `${question(request)}!` }))
  const swarm = new Swarm(
    agentAt(server.baseUrl),
    new Agent({ name: 'other', conf: { llm_base_url: server.baseUrl, llm_model_name: 'm' } }),
  )
  expect(await Runners.syncRun({ input: 'hey', swarm })).toMatchObject({
    answer: 'hey!!',
    invocations: [{ id: 'solver' }, { id: 'other', startedBy: [{ trajectory: 'solver' }] }],
  })
  const byId = await Runners.runTask(new Task({ id: 't1', input: 'ho', agent: agentAt(server.baseUrl) }))
  expect(byId['t1']).toMatchObject({ id: 't1', answer: 'ho!' })
})

test('serves the tools of an mcpConfig from the environment it was given, and gives the lease back', async () => {
  await using server = await createScriptedServer([{ toolCalls: [{ id: 'c', name: 'now', arguments: '' }] }, { content: 'noon' }])
  const environment = inProcessEnvironment({
    list: async () => [{ name: 'now', parameters: { type: 'object' } }],
    call: async () => ({ content: '12:00', isError: false }),
  })
  const agent = agentAt(server.baseUrl, { mcpConfig: { mcpServers: { clock: { command: 'clock' } } } })
  expect(await createRunners({ environment }).run('What time is it?', agent)).toMatchObject({
    answer: 'noon',
    toolCalls: [{ name: 'now', content: '12:00' }],
  })
  expect(environment.leases).toEqual({ opened: 1, closed: 1 })
  await expect(Runners.run('What time is it?', agent)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('Agent "solver" has an mcpConfig, but these Runners have no environment'),
  })
})

test('an agent without a model needs a policy', async () => {
  await using server = await createScriptedServer([{ content: 'hi' }])
  await expect(Runners.run('hello', new Agent())).rejects.toThrow('Agent "agent" has no model of its own; set llmBaseUrl and llmModelName')
  const policy = { baseUrl: server.baseUrl, apiKey: 'k', model: 'm' }
  expect(await createRunners({ policy }).run('hello', new Agent())).toMatchObject({ answer: 'hi' })
})

test('a failure is in the response, not thrown, with the messages so far', async () => {
  const refusal = { status: 401, error: { message: 'wrong key' } }
  await using server = await createScriptedServer([{ content: 'first' }, { toolCalls: [{ id: 'c', name: 'x', arguments: '' }] }, refusal])
  const response = await Runners.run('hello', new Swarm(agentAt(server.baseUrl), agentAt(server.baseUrl, { name: 'second' })))
  expect(response.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'tool'])
  expect(response).toMatchObject({
    success: false,
    status: 'failed',
    answer: null,
    error: { code: 'AGENT_FAILED' },
    msg: expect.stringContaining('wrong key'),
  })
})

test('a timeout and a cancellation end the call', async () => {
  const controller = new AbortController()
  await using server = await createScriptedServer((request) => {
    if (question(request) === 'cancelled') controller.abort()
    return 'hang'
  })
  const agent = agentAt(server.baseUrl)
  expect(await Runners.run({ id: 't', input: 'x', agent, timeout: 0.05 })).toMatchObject({
    status: 'timeout',
    success: false,
    msg: 'Task "t" ran longer than its timeout of 0.05 s; raise "timeout".',
  })
  expect(await Runners.run('cancelled', agent, { signal: controller.signal })).toMatchObject({ status: 'cancelled', success: false })
  await server.hungUp
})

test('runs tasks at the same time, at most workerNum, and one failure does not touch the others', async () => {
  let running = 0
  let most = 0
  const two = Promise.withResolvers<void>()
  const count = tool({
    name: 'count',
    parameters: z.object({}),
    execute: async () => {
      running += 1
      most = Math.max(most, running)
      if (running === 2) two.resolve()
      await two.promise
      await delay(10)
      running -= 1
    },
  })
  await using server = await createScriptedServer((request) => {
    if (question(request) === 'bad') return { status: 400, error: { message: 'no' } }
    return request.body.messages.length === 1 ? { toolCalls: [{ id: 'c', name: 'count', arguments: '' }] } : { content: 'ok' }
  })
  const tasks = ['a', 'bad', 'c', 'd', 'e'].map((input) => ({ id: input, input, agent: agentAt(server.baseUrl, { tools: [count] }) }))
  const responses = await Runners.execTasks(tasks, { worker_num: 2 })
  expect(Object.entries(responses).map(([id, { status }]) => [id, status])).toEqual([
    ['a', 'success'],
    ['bad', 'failed'],
    ['c', 'success'],
    ['d', 'success'],
    ['e', 'success'],
  ])
  expect(most).toBe(2)
})

test('in series an answer is the next input, and an error never is', async () => {
  await using server = await createScriptedServer((request) =>
    question(request) === 'start++' ? { status: 400, error: { message: 'no more' } } : { content: `${question(request)}+` },
  )
  const tasks = ['a', 'b', 'c', 'd'].map((id) => ({ id, input: id === 'a' ? 'start' : 'unused', agent: agentAt(server.baseUrl) }))
  const responses = await Runners.serialExecTasks(tasks)
  expect(Object.values(responses).map(({ status, answer }) => [status, answer])).toEqual([
    ['success', 'start+'],
    ['success', 'start++'],
    ['failed', null],
    ['cancelled', null],
  ])
  expect(responses['d']!.msg).toMatch(/^Not run: task "c" before it failed: .*no more/)
  expect(server.requests.map(question)).toEqual(['start', 'start+', 'start++'])
})

test.each([
  ['no agent', () => Runners.run({ input: 'x' }), 'AGENT_INVALID', /expected an Agent or a Swarm/],
  [
    'agent and swarm',
    () => Runners.run({ input: 'x', agent: new Agent(), swarm: new Swarm(new Agent()) }),
    'CONFIG_INVALID',
    /both "agent" and "swarm"/,
  ],
  ['an empty question', () => Runners.run('', new Agent()), 'CONFIG_INVALID', /the input is an empty string/],
  [
    'a misspelt field',
    () => Runners.run({ inptu: 'x', agent: new Agent() } as never),
    'CONFIG_INVALID',
    /unknown option "inptu"; did you mean "input"/,
  ],
  [
    'equal ids',
    () => Runners.execTasks([1, 2].map(() => ({ id: 'a', input: 'x', agent: new Agent() }))),
    'CONFIG_INVALID',
    /Two tasks have the id "a"/,
  ],
  [
    'another engine',
    () => Runners.run('x', new Agent(), { runConf: { engine_name: 'ray' } }),
    'CONFIG_INVALID',
    /engineName "ray": tasks of Runners have live agents, which no other process can have; use engineName "local"/,
  ],
  [
    'a launcher',
    () => Runners.run('x', new Agent(), { runConf: { cls: './launcher.ts#create' } }),
    'CONFIG_INVALID',
    /"cls" of your own: Runners start/,
  ],
  [
    'a live object with processes',
    () => Runners.execTasks([{ input: 'x', agent: new Agent() }], { reuse_process: false }),
    'CONFIG_INVALID',
    /reuseProcess false: tasks of Runners have live agents, which no other process can have; leave it out, or run rollouts/,
  ],
  [
    'slots of workers',
    () => Runners.execTasks([], { slots: 4 }),
    'CONFIG_INVALID',
    /"slots" is for workers, and Runners start none; leave it out, and set workerNum/,
  ],
  ['resources of workers', () => Runners.execTasks([], { resources: { num_cpus: 1 } }), 'CONFIG_INVALID', /"resources" is for workers/],
  ['variables of workers', () => Runners.serialExecTasks([], { env: { A: '1' } }), 'CONFIG_INVALID', /"env" is for workers/],
  [
    'an address of workers',
    () => Runners.run('x', new Agent(), { runConf: { address: 'http://head:8265' } }),
    'CONFIG_INVALID',
    /"address" is for workers, and Runners start none; leave it out\./,
  ],
  ['no slots', () => Runners.execTasks([], { slots: 0 }), 'CONFIG_INVALID', /"slots" is number 0/],
  ['no workers', () => Runners.execTasks([], { workerNum: 0 }), 'CONFIG_INVALID', /"workerNum" is number 0/],
])('misuse with %s rejects', async (_, run, code, message) => {
  await expect(run()).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
})

test('RunConfig has the defaults of AWorld', () => {
  expect({ ...new RunConfig({ worker_num: 4, reuse_process: false }) }).toEqual({
    engineName: 'local',
    workerNum: 4,
    sequenceDependent: false,
    reuseProcess: false,
    respCarryContext: true,
    jobName: 'aworld_job',
    cls: undefined,
  })
})
