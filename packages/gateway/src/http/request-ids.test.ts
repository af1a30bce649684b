import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { sessionRequest, startGateway } from '../testing/start-gateway.ts'

const messages = [{ role: 'user' as const, content: 'Hi.' }]
const id = /^req_[0-9a-f]{32}$/

type Refused = { readonly requestID: string; readonly error: { readonly request_id?: string } }
const refusalOf = async (call: Promise<unknown>) => (await call.catch((error: unknown) => error)) as Refused

/** The ids that each client reports for an answer, a stream, an error and a list. */
const clients = {
  async 'chat-completions'(baseURL: string) {
    const client = new OpenAI({ baseURL, apiKey: 'any', maxRetries: 0 })
    const body = { model: 'any', messages }
    const { _request_id: whole } = await client.chat.completions.create(body)
    const stream = await client.chat.completions.create({ ...body, stream: true }).withResponse()
    await stream.response.text()
    const { requestID } = await refusalOf(client.chat.completions.create({ ...body, n: 2 }))
    return [whole, stream.request_id, requestID, (await client.models.list().withResponse()).request_id]
  },
  async responses(baseURL: string) {
    const client = new OpenAI({ baseURL, apiKey: 'any', maxRetries: 0 })
    const body = { model: 'any', input: 'Hi.' }
    const { _request_id: whole } = await client.responses.create(body)
    const stream = await client.responses.create({ ...body, stream: true }).withResponse()
    await stream.response.text()
    return [whole, stream.request_id, (await refusalOf(client.responses.create({ ...body, input: [] }))).requestID]
  },
  async messages(baseURL: string) {
    const client = new Anthropic({ baseURL, apiKey: 'any', maxRetries: 0 })
    const body = { model: 'any', max_tokens: 9, messages }
    const { _request_id: whole } = await client.messages.create(body)
    const stream = await client.messages.create({ ...body, stream: true }).withResponse()
    await stream.response.text()
    const { requestID, error } = await refusalOf(client.messages.create({ ...body, messages: [] }))
    expect(error.request_id).toBe(requestID)
    return [whole, stream.request_id, requestID, (await client.models.list().withResponse()).request_id]
  },
}

test.each(Object.entries(clients))('clients of %s hear the id of every request: answers, streams, errors', async (_, ask) => {
  await using tokens = await startGateway({ say: () => 'Fine.' })
  await using chat = await startChatGateway(() => 'Fine.', { aliases: { '*': 'policy' } })
  const seen: (string | null | undefined)[] = []
  for (const { gateway } of [tokens, chat]) seen.push(...(await ask(gateway.open(sessionRequest()).endpoint('agent').baseUrl)))
  for (const each of seen) expect(each).toMatch(id)
  expect(new Set(seen).size).toBe(seen.length)
})

test('the log of a failure names the request as its client heard it, also within a stream that had begun', async () => {
  const logged: unknown[] = []
  await using started = await startGateway({
    say: () => ({ text: 'Half an answer.', error: new Error('no memory') }),
    logger: { warn: (_message, details) => void logged.push(details?.['requestId']) },
  })
  const { baseUrl } = started.gateway.open(sessionRequest()).endpoint('agent')
  const heard: string[] = []
  for (const stream of [false, true]) {
    const answer = await fetch(`${baseUrl}/messages`, { method: 'POST', body: JSON.stringify({ max_tokens: 99, messages, stream }) })
    const name = answer.headers.get('request-id')!
    const text = await answer.text()
    expect([answer.headers.get('x-request-id'), text]).toEqual([null, expect.stringContaining(`"request_id":"${name}"`)])
    heard.push(name)
  }
  expect(logged).toEqual(heard)
})
