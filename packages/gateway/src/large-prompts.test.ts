import type { Worker } from 'node:worker_threads'
import type { PolicyEndpoint } from '@aworld-train/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createGateway } from './gateway.ts'
import { post, sessionRequest, startGateway, until } from './testing/start-gateway.ts'

/** Encoding away from the event loop in a test: threads that were started, and texts that they answered. */
let encoding = { threads: 0, answers: 0 }
const watch = (worker: Worker) => {
  encoding.threads += 1
  worker.on('message', () => {
    encoding.answers += 1
  })
}
beforeEach(() => {
  encoding = { threads: 0, answers: 0 }
  process.on('worker', watch)
})
afterEach(() => void process.off('worker', watch))

const megabyte = 1024 * 1024
const user = (content: string) => ({ role: 'user', content })
/** By path: a body with one message. */
const bodies: Readonly<Record<string, (content: string) => object>> = {
  '/chat/completions': (content) => ({ messages: [user(content)] }),
  '/responses': (content) => ({ input: content }),
  '/messages': (content) => ({ max_tokens: 5, messages: [user(content)] }),
  '/messages/count_tokens': (content) => ({ messages: [user(content)] }),
  '/responses/input_tokens': (content) => ({ input: content }),
}

async function send({ baseUrl }: PolicyEndpoint, path: string, body: object): Promise<{ status: number; text: string }> {
  const response = await fetch(`${baseUrl}${path}`, { method: 'POST', body: JSON.stringify({ model: 'any', ...body }) })
  return { status: response.status, text: await response.text() }
}

test('text above 16 bytes for each token of context is refused before it is encoded, as too long for the context, in every dialect', async () => {
  await using started = await startGateway({ say: () => 'Fine.', contextLength: 128, limits: { maxBodyBytes: 64 * megabyte } })
  const session = started.gateway.open(sessionRequest())
  const long = 'long '.repeat(4_000)
  for (const [path, body] of Object.entries(bodies)) {
    const { status, text } = await send(session.endpoint('agent'), path, body(long))
    expect([path, status]).toEqual([path, 400])
    expect(text).toContain('"context_length_exceeded"')
    expect(text).toMatch(/has (at least )?200\d\d bytes, and a prompt may have 2048 \(maxPromptBytes\); shorten it/)
  }
  const streamed = await send(session.endpoint('agent'), '/chat/completions', { messages: [user('x'.repeat(16 * megabyte))], stream: true })
  expect(streamed.text).toContain('(maxPromptBytes)')
  expect(encoding.threads).toBe(0)
  expect(started.engine.requests.length).toBe(0)
  expect(session.failure()).toMatchObject({ code: 'POLICY_CONTEXT_OVERFLOW', details: { stopReason: 'context-overflow' } })
  expect((await send(session.endpoint('agent'), '/chat/completions', { messages: [user('short')] })).status).toBe(200)
})

test('maxPromptBytes of a model takes the place of 16 bytes a token', async () => {
  await using wide = await startGateway({ say: () => 'Fine.', contextLength: 128, maxPromptBytes: 100_000 })
  const long = { messages: [user('long '.repeat(4_000))] }
  const answer = await post(wide.gateway.open(sessionRequest()).endpoint('agent'), long)
  expect(answer.json().error).toMatchObject({ code: 'context_length_exceeded', message: expect.stringMatching(/has 200\d\d tokens/) })
  expect(encoding).toEqual({ threads: 1, answers: 1 })
  await using narrow = await startGateway({ say: () => 'Fine.', maxPromptBytes: 100 })
  const refused = await post(narrow.gateway.open(sessionRequest()).endpoint('agent'), { messages: [user('x'.repeat(101))] })
  expect(refused.json().error.message).toContain('a prompt may have 100 (maxPromptBytes)')
})

test('a body is refused at 8 times the largest prompt or 1 MiB, unless a limit is set; 60 MB leave the process as it was', async () => {
  await using started = await startGateway({ say: () => 'Fine.', contextLength: 2_048 })
  const endpoint = started.gateway.open(sessionRequest()).endpoint('agent')
  const large = await post(endpoint, { messages: [user('x'.repeat(60_000_000))] })
  expect([large.status, large.json().error.message]).toEqual([413, expect.stringContaining(`larger than ${megabyte} bytes`)])
  expect((await post(endpoint, { messages: [user('x'.repeat(megabyte))] })).status).toBe(413)
  expect((await post(endpoint, { messages: [user('x'.repeat(megabyte - 200))] })).json().error.code).toBe('context_length_exceeded')
  expect((await post(endpoint, { messages: [user('short')] })).status).toBe(200)
  expect(encoding.threads).toBe(0)
})

test('beside a third party the body for a policy has the limit of the policy', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { engine, chat } = started
  const judge = { kind: 'frozen', baseUrl: 'http://127.0.0.1:1/v1', dialect: 'chat-completions', model: 'big', retries: 0 } as const
  const gateway = await createGateway({ models: { policy: { kind: 'token', engine, chat }, judge }, seed: 1 })
  const endpoint = gateway.open(sessionRequest()).endpoint('agent')
  const messages = [user('x'.repeat(2 * megabyte))]
  const [refused, passed] = [await post(endpoint, { model: 'policy', messages }), await post(endpoint, { model: 'judge', messages })]
  expect([refused.status, refused.json().error.code]).toEqual([413, 'request_too_large'])
  expect(passed.json().error.code).not.toBe('request_too_large')
  await gateway.close()
})

test('long prompts whose clients hung up while others were encoded are not encoded', async () => {
  await using started = await startGateway({ say: () => 'Fine.', contextLength: 100_000 })
  const { gateway } = started
  const long = (seed: number, words = 1_000) => ({ messages: [user(`${seed} ${'long '.repeat(words)}`)] })
  const open = (rollout: string) => gateway.open(sessionRequest({ rollout })).endpoint('agent')
  const leaving = new AbortController()
  const first = post(open('first'), long(0, 200_000))
  await until(() => encoding.threads === 1)
  const gone = Array.from({ length: 10 }, (_, index) => post(open(`gone-${index}`), long(1 + index), { signal: leaving.signal }))
  await until(() => gateway.counts().inFlight === 11)
  leaving.abort()
  for (const each of gone) await expect(each).rejects.toThrow()
  await until(() => gateway.counts().inFlight <= 1)
  expect((await first).json().error.code).toBe('context_length_exceeded')
  expect((await post(open('last'), long(20))).status).toBe(200)
  expect(encoding.answers).toBe(2)
})
