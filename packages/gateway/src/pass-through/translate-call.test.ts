import Anthropic from '@anthropic-ai/sdk'
import type { PolicyEndpoint, Trajectory } from '@aworld-train/core'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { promptOf } from '../testing/chat-server.ts'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { sessionRequest } from '../testing/start-gateway.ts'

interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: string
}
type Ask = (endpoint: PolicyEndpoint, messages: Message[], stream: boolean) => Promise<string>

const anthropic = ({ baseUrl, apiKey }: PolicyEndpoint) => new Anthropic({ baseURL: baseUrl, apiKey, maxRetries: 0 })
const openai = ({ baseUrl, apiKey }: PolicyEndpoint) => new OpenAI({ baseURL: baseUrl, apiKey, maxRetries: 0 })

const clients: Readonly<Record<string, Ask>> = {
  async responses(endpoint, input, stream) {
    const { responses } = openai(endpoint)
    const body = { model: 'policy', input, temperature: 0.1 }
    const { output_text: text, status } = stream ? await responses.stream(body).finalResponse() : await responses.create(body)
    expect(status).toBe('completed')
    return text
  },
  async messages(endpoint, messages, stream) {
    const client = anthropic(endpoint).messages
    const body = { model: 'policy', max_tokens: 64, messages, temperature: 0.1 }
    const { content, stop_reason: reason } = stream ? await client.stream(body).finalMessage() : await client.create(body)
    expect(reason).toBe('end_turn')
    return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  },
}

const codes = (text: string) => Int32Array.from(Array.from(text, (character) => character.charCodeAt(0)))
const question: Message = { role: 'user', content: 'Atomic number of gold?' }

for (const [dialect, ask] of Object.entries(clients)) {
  for (const stream of [false, true]) {
    test(`a conversation in ${dialect} is asked of the engine in Chat Completions and recorded with its ids (stream: ${stream})`, async () => {
      await using started = await startChatGateway((_, index) => ['79 ✓', 'Au.'][index]!)
      const session = started.gateway.open(sessionRequest())
      const endpoint = session.endpoint('agent')
      const first = await ask(endpoint, [question], stream)
      const history: Message[] = [question, { role: 'assistant', content: first }, { role: 'user', content: 'Its symbol?' }]
      expect([first, await ask(endpoint, history, stream)]).toEqual(['79 ✓', 'Au.'])
      for (const [index, messages] of [[question], history].entries()) {
        const { body } = started.server.calls[index]!
        expect(body).toMatchObject({ model: 'served', messages, temperature: 1, logprobs: true, return_token_ids: true })
        expect(body.stream ?? false).toBe(stream)
      }
      const [{ turns }] = (await session.close()) as [Trajectory]
      expect(turns).toMatchObject([
        { parent: null, promptTokenIds: codes(promptOf([question])), completionTokenIds: codes('79 ✓\0'), delivered: 'delivered' },
        { parent: 0, promptTokenIds: codes(promptOf(history)), completionTokenIds: codes('Au.\0'), delivered: 'delivered' },
      ])
      expect(started.gateway.counts()).toMatchObject({ continuations: 1, failures: 0, inFlight: 0, ignored: { temperature: 2 } })
    })
  }
}

test('an answer is gone on from by its id', async () => {
  await using started = await startChatGateway((_, index) => ['79.', 'Au.'][index]!)
  const session = started.gateway.open(sessionRequest())
  const { responses } = openai(session.endpoint('agent'))
  const { id } = await responses.create({ model: 'policy', input: question.content })
  await responses.create({ model: 'policy', input: 'Its symbol?', previous_response_id: id })
  expect(started.server.calls[1]!.body.messages).toMatchObject([
    question,
    { role: 'assistant', content: '79.' },
    { role: 'user', content: 'Its symbol?' },
  ])
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns.map(({ parent }) => parent)).toEqual([null, 0])
})

test('calls and their results keep their ids on the way', async () => {
  const call = { id: 'call_theirs', type: 'function', function: { name: 'lookup', arguments: '{"name":  "gold"}' } }
  const message = { role: 'assistant', content: null, tool_calls: [call] }
  await using started = await startChatGateway((_, index) =>
    index === 0 ? { text: 'call', choice: { message, finish_reason: 'tool_calls' } } : 'It is 79.',
  )
  const session = started.gateway.open(sessionRequest())
  const client = anthropic(session.endpoint('agent')).messages
  const tools: Anthropic.Tool[] = [{ name: 'lookup', input_schema: { type: 'object', properties: { name: { type: 'string' } } } }]
  const body = { model: 'policy', max_tokens: 64, tools }
  const questions = [question]
  const { content, stop_reason: reason } = await client.create({ ...body, messages: questions })
  expect(content).toEqual([expect.objectContaining({ type: 'tool_use', id: 'call_theirs', name: 'lookup', input: { name: 'gold' } })])
  expect(reason).toBe('tool_use')
  const result = { type: 'tool_result' as const, tool_use_id: 'call_theirs', content: '79' }
  await client.create({ ...body, messages: [...questions, { role: 'assistant', content }, { role: 'user', content: [result] }] })
  const { messages, tools: sent } = started.server.calls[1]!.body
  expect(messages.slice(1)).toMatchObject([
    { role: 'assistant', tool_calls: [{ id: 'call_theirs', function: { name: 'lookup' } }] },
    { role: 'tool', tool_call_id: 'call_theirs', content: '79' },
  ])
  expect(sent).toEqual([{ type: 'function', function: { name: 'lookup', parameters: tools[0]!.input_schema } }])
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns[0]!.toolCalls).toEqual([{ id: 'call_theirs', name: 'lookup', arguments: '{"name":  "gold"}' }])
})
