import { createVllmChatEngine } from '@aworld-train/engines/remote'
import { createGateway } from '@aworld-train/gateway'
import { expect, test } from 'vitest'
import { createTestServer, sendJson } from '../packages/engines/src/remote/testing/http-server.ts'
import { sessionRequest } from '../packages/gateway/src/testing/start-gateway.ts'

const answer = {
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'ja' },
      logprobs: { content: [{ token: 'ja', logprob: -1 }] },
      finish_reason: 'stop',
      token_ids: [1],
    },
  ],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  prompt_token_ids: [0],
}

test('a server counts the rollouts that are open, and none that has ended', async () => {
  await using stack = new AsyncDisposableStack()
  const server = await createTestServer((request, response) => {
    if (request.path === '/health') return void response.writeHead(200).end()
    return sendJson(response, 200, request.method === 'GET' ? { weight_version: 'default' } : answer)
  })
  stack.defer(() => server.close())
  const engine = await createVllmChatEngine({ replicas: [server.url], model: { name: 'policy', contextLength: 1024 } })
  stack.defer(() => engine.close())
  const gateway = await createGateway({ models: { policy: { kind: 'chat', engine } }, seed: 1 })
  stack.defer(() => gateway.close())
  const sessions = ['a', 'b', 'c'].map((rollout) => gateway.open(sessionRequest({ rollout, policy: 'policy' })))
  for (const session of sessions) {
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'Ja?' }] })
    const response = await fetch(`${session.endpoint('agent').baseUrl}/chat/completions`, { method: 'POST', body })
    expect(response.status, await response.text()).toBe(200)
  }
  expect(engine.fleet.replicas().map((replica) => replica.sessions)).toEqual([3])
  await Promise.all(sessions.slice(1).map((session) => session.close()))
  expect(engine.fleet.counts().sessions).toBe(1)
})
