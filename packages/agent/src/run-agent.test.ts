import { setTimeout as delay } from 'node:timers/promises'
import { TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { Agent } from './agent.ts'
import { inProcessEnvironment, runOnce } from './run-once.test-support.ts'
import { createScriptedServer } from './scripted-server.test-support.ts'
import { tool } from './tool.ts'

const add = tool({
  name: 'add',
  description: 'Adds two numbers.',
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
})

const call = (id: string, name: string, args: unknown) => ({ id, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) })

const contents = (messages: readonly { role: unknown; content?: unknown }[], role: string) =>
  messages.filter((message) => message.role === role).map((message) => message.content)

test('calls tools until a message without tool calls, which is the answer', async () => {
  await using server = await createScriptedServer([
    { toolCalls: [call('c1', 'add', { a: 1, b: 2 })] },
    { content: 'once more', toolCalls: [call('c2', 'add', { a: 3, b: 4 })] },
    { content: 'The sums are 3 and 7.' },
  ])
  const agent = new Agent({ name: 'solver', systemPrompt: 'You add.', tools: [add] })
  const result = await runOnce(agent, { baseUrl: server.baseUrl })

  expect(result.answer).toBe('The sums are 3 and 7.')
  expect(result.stopped).toBeUndefined()
  expect(result.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'tool', 'assistant'])
  expect(result.toolCalls).toMatchObject([
    { agent: 'solver', id: 'c1', name: 'add', arguments: '{"a":1,"b":2}', content: '3', isError: false },
    { agent: 'solver', id: 'c2', content: '7', isError: false },
  ])
  const last = server.requests[2]!
  expect(last.url).toBe('/v1/chat/completions')
  expect(last.headers.authorization).toBe('Bearer policy-key')
  expect(Object.keys(last.headers).filter((name) => name.startsWith('x-stainless'))).toEqual([])
  expect(last.body).toEqual({
    model: 'policy-model',
    messages: [
      { role: 'system', content: 'You add.' },
      { role: 'user', content: 'What is 1 + 2?' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1,"b":2}' } }],
      },
      { role: 'tool', content: '3', tool_call_id: 'c1' },
      {
        role: 'assistant',
        content: 'once more',
        tool_calls: [{ id: 'c2', type: 'function', function: { name: 'add', arguments: '{"a":3,"b":4}' } }],
      },
      { role: 'tool', content: '7', tool_call_id: 'c2' },
    ],
    tools: [
      {
        type: 'function',
        function: {
          name: 'add',
          description: 'Adds two numbers.',
          parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
        },
      },
    ],
  })
})

test('runs parallel calls at the same time and answers in the order of the calls', async () => {
  await using server = await createScriptedServer([
    { toolCalls: [call('slow', 'wait', { ms: 80 }), call('fast', 'wait', { ms: 1 })] },
    { content: 'done' },
  ])
  const finished: number[] = []
  let running = 0
  let most = 0
  const wait = tool({
    name: 'wait',
    parameters: z.object({ ms: z.number() }),
    execute: async ({ ms }) => {
      running += 1
      most = Math.max(most, running)
      await delay(ms)
      running -= 1
      finished.push(ms)
      return `waited ${ms}`
    },
  })
  const result = await runOnce(new Agent({ tools: [wait] }), { baseUrl: server.baseUrl })
  expect(finished).toEqual([1, 80])
  expect(most).toBe(2)
  expect(contents(result.messages, 'tool')).toEqual(['waited 80', 'waited 1'])
  expect(server.requests[1]!.body.messages.slice(-2).map((message) => message['tool_call_id'])).toEqual(['slow', 'fast'])
})

test('uses the leased tools of the environment and passes their errors to the model', async () => {
  await using server = await createScriptedServer([
    { toolCalls: [call('c1', 'lookup', { element: 'unobtainium' })] },
    { content: 'unknown' },
  ])
  const seen: unknown[] = []
  const environment = inProcessEnvironment({
    list: async () => [{ name: 'lookup', parameters: { type: 'object' } }],
    call: async (request) => {
      seen.push(request)
      return { content: 'no such element', isError: true }
    },
  })
  const agent = new Agent({ name: 'chemist', mcpConfig: { mcpServers: { table: { command: 'node' } } } })
  const result = await runOnce(agent, { baseUrl: server.baseUrl, environment })
  expect(seen).toEqual([{ id: 'c1', name: 'lookup', arguments: { element: 'unobtainium' } }])
  expect(contents(result.messages, 'tool')).toEqual(['no such element'])
  expect(result.toolCalls).toMatchObject([{ name: 'lookup', isError: true, content: 'no such element' }])
  expect(environment.leases).toEqual({ opened: 1, closed: 1 })
})

test.each([
  ['malformed JSON', call('c1', 'add', '{"a": 1,'), /arguments of "add" are not valid JSON/],
  ['an array', call('c1', 'add', '[1, 2]'), /are an array; write a JSON object/],
  ['a wrong type', call('c1', 'add', { a: 'one', b: 2 }), /invalid arguments for "add": "a"/],
  ['an unknown tool', call('c1', 'ad', { a: 1, b: 2 }), /no tool "ad"; did you mean "add"\? The tools are: add/],
  ['an empty name', call('c1', '', '{}'), /no tool ""/],
])('answers a call with %s by an error text that is counted', async (_, wrong, text) => {
  await using server = await createScriptedServer([{ toolCalls: [wrong] }, { content: 'sorry' }])
  const result = await runOnce(new Agent({ tools: [add] }), { baseUrl: server.baseUrl })
  expect(result.answer).toBe('sorry')
  expect(contents(result.messages, 'tool')[0]).toMatch(text)
  expect(result.toolCalls).toMatchObject([{ isError: true }])
})

test('tells the model of a call that the gateway could not read, and goes on', async () => {
  const text = '<tool_call>{"name": "add", "arguments": {a: 1}}</tool_call>'
  await using server = await createScriptedServer([
    { content: text, malformedCall: true },
    { toolCalls: [call('c1', 'add', { a: 1, b: 2 })] },
    { content: '3' },
  ])
  const result = await runOnce(new Agent({ tools: [add] }), { baseUrl: server.baseUrl })
  expect(result.answer).toBe('3')
  expect(server.requests[1]!.body.messages.slice(-2)).toEqual([
    { role: 'assistant', content: text },
    { role: 'user', content: 'Error: this tool call cannot be read; its arguments must be a JSON object. Write the call again.' },
  ])
})

test('ends without an answer where the last turn is a call that the gateway could not read', async () => {
  await using server = await createScriptedServer(() => ({ content: '<tool_call>', malformedCall: true }))
  const result = await runOnce(new Agent({ tools: [add], maxTurns: 2 }), { baseUrl: server.baseUrl })
  expect(result).toMatchObject({ answer: null, stopped: 'turn-limit' })
  expect(server.requests).toHaveLength(2)
})

test.each(['null', '""', '', ' '])('takes %j as no arguments', async (text) => {
  await using server = await createScriptedServer([{ toolCalls: [call('c1', 'now', text)] }, { content: 'ok' }])
  const now = tool({ name: 'now', parameters: z.object({}), execute: () => 'noon' })
  const result = await runOnce(new Agent({ tools: [now] }), { baseUrl: server.baseUrl })
  expect(contents(result.messages, 'tool')).toEqual(['noon'])
})

test('gives the model the text of a tool that throws', async () => {
  await using server = await createScriptedServer([{ toolCalls: [call('c1', 'explode', '')] }, { content: 'ok' }])
  const explode = tool({
    name: 'explode',
    parameters: z.object({}),
    execute: () => {
      throw new RangeError('too much')
    },
  })
  const result = await runOnce(new Agent({ tools: [explode] }), { baseUrl: server.baseUrl })
  expect(contents(result.messages, 'tool')).toEqual(['Error: too much'])
  expect(result.toolCalls).toMatchObject([{ isError: true }])
})

test.each([
  ['its own', { maxTurns: 2 }, {}, 2],
  ["the configuration's", { conf: { max_steps: 3 } }, {}, 3],
  ["the rollout's", {}, { maxTurns: 4 }, 4],
  ["the rollout's, when its own is more", { maxTurns: 9 }, { maxTurns: 2 }, 2],
  ['the default', {}, {}, 10],
])('stops at %s limit of turns without an answer', async (_, options, limits, turns) => {
  await using server = await createScriptedServer(() => ({ toolCalls: [call('c', 'add', { a: 1, b: 1 })] }))
  const result = await runOnce(new Agent({ tools: [add], ...options }), { baseUrl: server.baseUrl, limits })
  expect(result).toMatchObject({ answer: null, stopped: 'turn-limit' })
  expect(server.requests).toHaveLength(turns)
  expect(result.toolCalls).toHaveLength(turns - 1)
})

test('a spent budget of tool calls rejects with its error', async () => {
  await using server = await createScriptedServer(() => ({ toolCalls: [call('c', 'add', { a: 1, b: 1 })] }))
  const running = runOnce(new Agent({ tools: [add] }), { baseUrl: server.baseUrl, limits: { maxToolCalls: 3 } })
  await expect(running).rejects.toMatchObject({ code: 'AGENT_LIMIT', message: expect.stringContaining('limit of 3 tool calls') })
})

test('an abort hangs up on the model call and rejects with the reason', async () => {
  await using server = await createScriptedServer(['hang'])
  const controller = new AbortController()
  const reason = new TrainError('AGENT_LIMIT', 'time is up')
  const running = runOnce(new Agent(), { baseUrl: server.baseUrl, signal: controller.signal })
  const rejected = expect(running).rejects.toBe(reason)
  while (server.requests.length === 0) await delay(5)
  controller.abort(reason)
  await rejected
  await server.hungUp
})

test('an abort reaches the tool that runs', async () => {
  await using server = await createScriptedServer([{ toolCalls: [call('c', 'sleep', '{}')] }])
  const controller = new AbortController()
  const stopped = Promise.withResolvers<void>()
  const sleep = tool({
    name: 'sleep',
    parameters: z.object({}),
    execute: async (_, { signal }) => {
      setImmediate(() => controller.abort(new TrainError('AGENT_LIMIT', 'enough')))
      await delay(60_000, undefined, { signal }).catch(() => stopped.resolve())
    },
  })
  const running = runOnce(new Agent({ tools: [sleep] }), { baseUrl: server.baseUrl, signal: controller.signal })
  await expect(running).rejects.toMatchObject({ message: 'enough' })
  await stopped.promise
})

test('a lost server ends the run and aborts the calls beside it; a slow call is an error the model sees', async () => {
  await using server = await createScriptedServer([
    { toolCalls: [call('c1', 'slow', '{}')] },
    { toolCalls: [call('c2', 'dead', '{}'), call('c3', 'sleep', '{}')] },
  ])
  const stopped = Promise.withResolvers<void>()
  const environment = inProcessEnvironment({
    list: async () => ['slow', 'dead'].map((name) => ({ name, parameters: { type: 'object' } })),
    call: async ({ name }) => {
      if (name === 'slow') throw new TrainError('TOOL_TIMEOUT', 'slow took longer than 5 s')
      throw new TrainError('TOOL_SERVER_DIED', 'the server died')
    },
  })
  const sleep = tool({
    name: 'sleep',
    parameters: z.object({}),
    execute: (_, { signal }) => delay(60_000, undefined, { signal }).catch(() => stopped.resolve()),
  })
  const agent = new Agent({ tools: [sleep], mcpConfig: { mcpServers: { s: { command: 'x' } } } })
  await expect(runOnce(agent, { baseUrl: server.baseUrl, environment })).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED' })
  await stopped.promise
  expect(contents(server.requests[1]!.body.messages as never, 'tool')).toEqual(['Error: slow took longer than 5 s'])
})

test('joins the system message of the task to the system prompt', async () => {
  await using server = await createScriptedServer([{ content: 'yes' }])
  const input = [
    { role: 'system' as const, content: 'Be brief.' },
    { role: 'user' as const, content: 'Is it?' },
  ]
  await runOnce(new Agent({ systemPrompt: 'You are kind.' }), { baseUrl: server.baseUrl, input })
  expect(server.requests[0]!.body.messages).toEqual([
    { role: 'system', content: 'You are kind.\n\nBe brief.' },
    { role: 'user', content: 'Is it?' },
  ])
})

test('two tools of one name are refused before the first call', async () => {
  await using server = await createScriptedServer([])
  const environment = inProcessEnvironment({
    list: async () => [{ name: 'add', parameters: { type: 'object' } }],
    call: async () => ({ content: '', isError: false }),
  })
  const agent = new Agent({ name: 'solver', tools: [add], mcpConfig: { mcpServers: { s: { command: 'x' } } } })
  await expect(runOnce(agent, { baseUrl: server.baseUrl, environment })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('Agent "solver" has two tools named "add"'),
  })
  expect(server.requests).toHaveLength(0)
})
