import type { Trajectory } from '@aworld-train/core'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { createGateway } from '../index.ts'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { lookupCall, lookupTool, openaiClient, post, sessionRequest, startGateway } from '../testing/start-gateway.ts'
import { say, startThirdParty } from '../testing/third-party.ts'

const messages = [{ role: 'user' as const, content: 'Hi.' }]
const include = ['message.output_text.logprobs' as const]
type Entries = readonly { token: string; logprob: number; top_logprobs?: readonly { token: string }[] | undefined }[]
const sampled = (entries: Entries | undefined) => (entries ?? []).map(({ token, logprob }) => [token, logprob])
const textOf = ({ output }: OpenAI.Responses.Response) => {
  const [part] = output.flatMap((item) => (item.type === 'message' ? item.content : []))
  return part?.type === 'output_text' ? part : undefined
}

test('an engine that reports sampled tokens alone serves their logprobs, and refuses alternatives by the name of the field', async () => {
  await using started = await startGateway({ say: () => 'Hi' })
  const endpoint = started.gateway.open(sessionRequest()).endpoint('agent')
  const ask = async (path: string, body: object) => {
    const answer = await fetch(endpoint.baseUrl + path, { method: 'POST', body: JSON.stringify(body) })
    return { status: answer.status, error: ((await answer.json()) as { error?: { param: string; message: string } }).error }
  }
  const cases: readonly (readonly [string, object, string, RegExp])[] = [
    ['/chat/completions', { messages, logprobs: true, top_logprobs: 3 }, 'top_logprobs', /is 3; .* sampled tokens alone. Send 0/],
    ['/chat/completions', { messages, top_logprobs: 3 }, 'top_logprobs', /send "logprobs": true/],
    ['/chat/completions', { messages, logprobs: true, top_logprobs: 21 }, 'top_logprobs', /from 0 to 20/],
    ['/chat/completions', { messages, logprobs: true, top_logprobs: '3' }, 'top_logprobs', /is "3"; it must be a whole number/],
    ['/responses', { input: 'Hi.', include, top_logprobs: 1 }, 'top_logprobs', /is 1/],
    ['/responses', { input: 'Hi.', top_logprobs: 1 }, 'top_logprobs', /is 1/],
    ['/responses', { input: 'Hi.', top_logprobs: -1 }, 'top_logprobs', /from 0 to 20/],
  ]
  for (const [path, body, param, message] of cases) {
    const { status, error } = await ask(path, body)
    expect([body, status, error]).toMatchObject([body, 400, { param, message: expect.stringMatching(message) }])
  }
  expect(started.engine.requests).toHaveLength(0)
  const client = openaiClient(endpoint)
  const entries = [
    ['H', -0.5],
    ['i', -0.25],
    ['<|im_end|>', -0.125],
  ]
  const { choices } = await client.chat.completions.create({ model: 'any', messages, logprobs: true, top_logprobs: 0 })
  expect(sampled(choices[0]!.logprobs!.content!)).toEqual(entries)
  const request = { model: 'any', input: 'Hi.', include, top_logprobs: 0 }
  expect(sampled(textOf(await client.responses.create(request))?.logprobs)).toEqual(entries)
  const events = client.responses.stream(request)
  const deltas: Entries[number][] = []
  for await (const event of events) if (event.type === 'response.output_text.delta') deltas.push(...(event.logprobs as Entries))
  expect(sampled(deltas)).toEqual(entries.slice(0, deltas.length))
  expect(deltas.length).toBeGreaterThan(0)
  expect(sampled(textOf(await events.finalResponse())?.logprobs)).toEqual(entries)
})

test('the logprobs of a streamed text stand on it also where a call follows', async () => {
  const text = `Well. ${lookupCall('gold')}`
  await using started = await startGateway({ say: () => text })
  const client = openaiClient(started.gateway.open(sessionRequest()).endpoint('agent'))
  const { name, description, parameters } = lookupTool.function
  const tools = [{ type: 'function' as const, name, description, parameters, strict: false }]
  const answer = await client.responses.stream({ model: 'any', input: 'Hi.', include, tools }).finalResponse()
  expect(answer.output.map(({ type }) => type)).toEqual(['message', 'function_call'])
  const tokens = sampled(textOf(answer)?.logprobs)
  expect(tokens.length).toBeGreaterThan(4)
  expect(tokens.map(([token]) => token).join('')).toBe(text.slice(0, tokens.length))
})

test('what a server gives is given on: alternatives in its own dialect and in Responses', async () => {
  await using started = await startChatGateway(() => 'ab')
  const session = started.gateway.open(sessionRequest())
  const endpoint = session.endpoint('agent')
  const client = new OpenAI({ baseURL: endpoint.baseUrl, apiKey: 'any', maxRetries: 0 })
  const seen = (entries: Entries | null | undefined) => (entries ?? []).map(({ token, top_logprobs: top }) => [token, top?.length])
  const entries = [
    ['a', 2],
    ['b', 2],
    ['\0', 2],
  ]
  const chat = { model: 'policy', messages, logprobs: true, top_logprobs: 2 }
  expect(seen((await client.chat.completions.create(chat)).choices[0]!.logprobs!.content)).toEqual(entries)
  const request = { model: 'policy', input: 'Hi.', include, top_logprobs: 2 }
  expect(seen(textOf(await client.responses.create(request))?.logprobs)).toEqual(entries)
  expect(seen(textOf(await client.responses.stream(request).finalResponse())?.logprobs)).toEqual(entries)
  expect(textOf(await client.responses.create({ model: 'policy', input: 'Hi.' }))?.logprobs).toEqual([])
  expect(started.server.calls.map(({ body }) => body['top_logprobs'])).toEqual([2, 2, 2, undefined])
  const odd = await post(endpoint, { messages, top_logprobs: '2' })
  expect([odd.status, odd.json().error.param]).toEqual([400, 'top_logprobs'])
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns.map(({ completionTokenIds }) => completionTokenIds.length)).toEqual([3, 3, 3, 3])
})

test('a third party is asked for them where its API has them, and else not at all', async () => {
  await using party = await startThirdParty((call, response) => say(call, response, 'Yes.'))
  const frozen = { kind: 'frozen', baseUrl: party.url, model: 'large' } as const
  const models = { chat: { ...frozen, dialect: 'chat-completions' }, messages: { ...frozen, dialect: 'messages' } } as const
  const gateway = await createGateway({ models, seed: 1 })
  const { baseUrl } = gateway.open(sessionRequest({ policy: 'chat', agents: [{ name: 'agent', trainable: false }] })).endpoint('agent')
  const ask = async (path: string, body: object) => {
    const answer = await fetch(baseUrl + path, { method: 'POST', body: JSON.stringify(body) })
    return [answer.status, ((await answer.json()) as { error?: { param: string } }).error?.param]
  }
  expect((await ask('/responses', { model: 'chat', input: 'Hi.', include, top_logprobs: 4 }))[0]).toBe(200)
  expect(party.calls[0]!.body).toMatchObject({ logprobs: true, top_logprobs: 4 })
  expect(await ask('/responses', { model: 'messages', input: 'Hi.', include })).toEqual([400, 'include'])
  expect(await ask('/chat/completions', { model: 'messages', messages, logprobs: true })).toEqual([400, 'logprobs'])
  expect(party.calls).toHaveLength(1)
  await gateway.close()
})
