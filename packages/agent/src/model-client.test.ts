import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { Agent } from './agent.ts'
import { runOnce } from './run-once.test-support.ts'
import { createScriptedServer, type ScriptedReply } from './scripted-server.test-support.ts'
import { tool } from './tool.ts'

const frozen = (baseUrl: string, more = {}) => new Agent({ name: 'judge', conf: { llmBaseUrl: baseUrl, llmModelName: 'gpt-x', ...more } })

const refusal = (status: number, message: string, code?: string): ScriptedReply => ({
  status,
  error: code ? { message, code } : { message },
})

test.each<[string, ScriptedReply, object]>([
  ["the gateway's own code", refusal(400, 'too long', 'POLICY_CONTEXT_OVERFLOW'), { code: 'POLICY_CONTEXT_OVERFLOW' }],
  ['its word on the wire', refusal(503, 'gone', 'policy_unavailable'), { code: 'POLICY_UNAVAILABLE' }],
  ['a limit', refusal(400, 'enough', 'limit_reached'), { code: 'AGENT_LIMIT' }],
  ["OpenAI's code", refusal(400, 'too long', 'context_length_exceeded'), { code: 'POLICY_CONTEXT_OVERFLOW' }],
  ['an unknown address', refusal(404, 'no such rollout'), { code: 'GATEWAY_UNAUTHORIZED' }],
  ['a bad request', refusal(400, 'bad'), { code: 'GATEWAY_BAD_REQUEST', message: 'The policy refused the call with status 400: bad' }],
  ['a failure', refusal(503, 'busy'), { code: 'POLICY_UNAVAILABLE', details: { status: 503 } }],
])('reports %s of the policy, which is asked once', async (_, reply, error) => {
  await using server = await createScriptedServer(() => reply)
  await expect(runOnce(new Agent(), { baseUrl: server.baseUrl })).rejects.toMatchObject(error)
  expect(server.requests).toHaveLength(1)
})

test('a failure of a frozen model behind the gateway names the model, and is met once', async () => {
  await using server = await createScriptedServer(() => refusal(500, 'no answer is recorded', 'frozen_replay_missing'))
  const judge = new Agent({ name: 'judge', conf: { llmProvider: 'gateway', llmModelName: 'large' } })
  await expect(runOnce(judge, { baseUrl: server.baseUrl })).rejects.toMatchObject({
    code: 'FROZEN_REPLAY_MISSING',
    message: expect.stringMatching(/^The frozen model ".+" refused the call with status 500: no answer is recorded$/),
  })
  expect(server.requests).toHaveLength(1)
})

test('repeats a refused call to an endpoint of the agent, as often as it says', async () => {
  await using server = await createScriptedServer([refusal(503, 'busy'), { content: 'fine' }, refusal(503, 'busy')])
  expect((await runOnce(frozen(server.baseUrl), {})).answer).toBe('fine')
  expect(server.requests).toHaveLength(2)
  await expect(runOnce(frozen(server.baseUrl, { maxRetries: 0 }), {})).rejects.toMatchObject({
    code: 'POLICY_UNAVAILABLE',
    message: `The model "gpt-x" at ${new URL(server.baseUrl).origin} refused the call with status 503: busy`,
  })
  expect(server.requests).toHaveLength(3)
})

test('a wrong key of a frozen agent is a failure of the agent', async () => {
  await using server = await createScriptedServer([refusal(401, 'wrong key')])
  await expect(runOnce(frozen(server.baseUrl), {})).rejects.toMatchObject({
    code: 'AGENT_FAILED',
    message: expect.stringContaining('status 401: wrong key'),
  })
})

test('an endpoint without a model name is refused', async () => {
  const agent = new Agent({ name: 'judge', conf: { llmBaseUrl: 'http://127.0.0.1:1/v1' } })
  await expect(runOnce(agent, {})).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('Agent "judge" has an llmBaseUrl but no llmModelName'),
  })
})

test('waits for a server that does not listen yet', async () => {
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => probe.once('listening', resolve))
  const { port } = probe.address() as { port: number }
  await new Promise((resolve) => probe.close(resolve))
  const running = runOnce(new Agent(), { baseUrl: `http://127.0.0.1:${port}/v1` })
  await delay(50)
  await using server = await createScriptedServer([{ content: 'here' }], port)
  expect((await running).answer).toBe('here')
  expect(server.requests).toHaveLength(1)
})

test('says where nothing listens', async () => {
  await expect(runOnce(frozen('http://127.0.0.1:1/v1', { maxRetries: 0 }), {})).rejects.toMatchObject({
    code: 'POLICY_UNAVAILABLE',
    message: expect.stringMatching(/The model "gpt-x" at http:\/\/127\.0\.0\.1:1 gave no answer: .*ECONNREFUSED/),
  })
})

test('does not repeat a call to the policy that broke after it was sent', async () => {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.on('error', () => {})
    socket.once('data', () => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = server.address() as { port: number }
    await expect(runOnce(new Agent(), { baseUrl: `http://127.0.0.1:${port}/v1` })).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
    expect(connections).toBe(1)
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
})

test('an answer that is no chat completion is a failure', async () => {
  const odd = { status: 200, error: { message: 'not a completion' } }
  await using server = await createScriptedServer([odd])
  await expect(runOnce(new Agent(), { baseUrl: server.baseUrl })).rejects.toMatchObject({
    code: 'POLICY_UNAVAILABLE',
    message: expect.stringContaining('not a chat completion'),
  })
})

test('reasoning goes back to the policy, and to no other endpoint', async () => {
  const noop = tool({ name: 'noop', parameters: z.object({}), execute: () => 'ok' })
  const script = [{ toolCalls: [{ id: 'c', name: 'noop', arguments: '' }], reasoning: 'I must.' }, { content: 'done' }]
  await using policy = await createScriptedServer(script)
  await using other = await createScriptedServer(script)
  const trained = new Agent({ tools: [noop] })
  const untrained = new Agent({ tools: [noop], conf: { llmBaseUrl: other.baseUrl, llmModelName: 'm' } })
  const result = await runOnce(trained, { baseUrl: policy.baseUrl })
  await runOnce(untrained, {})
  expect(result.messages[1]).toMatchObject({ role: 'assistant', reasoning: 'I must.' })
  expect(policy.requests[1]!.body.messages[1]).toMatchObject({ reasoning_content: 'I must.' })
  expect(other.requests[1]!.body.messages[1]).not.toHaveProperty('reasoning_content')
})
