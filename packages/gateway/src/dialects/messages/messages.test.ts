import Anthropic from '@anthropic-ai/sdk'
import type { PolicyEndpoint } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { readNamedEvents } from '../../testing/read-named-events.ts'
import { lookupCall, sessionRequest, startGateway } from '../../testing/start-gateway.ts'

type Tool = Anthropic.Tool

const script = [
  `<think>\nGold first.\n</think>\n\nLet me look.\n${lookupCall('gold')}`,
  `${lookupCall('iron')}\n${lookupCall('tin')}`,
  'Gold is 79 and iron is 26.',
]
const results: Readonly<Record<string, string>> = { gold: '79', iron: '26', tin: '50' }

const lookup: Tool = {
  name: 'lookup',
  description: 'Looks up an element.',
  input_schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
}

const anthropicClient = ({ baseUrl, apiKey }: PolicyEndpoint) => new Anthropic({ baseURL: baseUrl, apiKey, maxRetries: 0 })

/** The loop every agent runs, with whole answers or streamed ones. */
async function runLoop(client: Anthropic, stream: boolean): Promise<Anthropic.Message> {
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Gold and iron?' }]
  for (let turn = 0; turn < 5; turn++) {
    const request = { model: 'any', max_tokens: 200, system: 'Answer with the tools.', messages, tools: [lookup], temperature: 0.1 }
    const message = stream ? await client.messages.stream(request).finalMessage() : await client.messages.create(request)
    expect(message.usage.output_tokens).toBeGreaterThan(0)
    messages.push({ role: 'assistant', content: message.content })
    if (message.stop_reason !== 'tool_use') return message
    const uses = message.content.filter((block) => block.type === 'tool_use')
    const content = uses.map(({ id, input }, index): Anthropic.ToolResultBlockParam => {
      const text = results[(input as { name: string }).name]!
      return { type: 'tool_result', tool_use_id: id, content: index > 0 ? [{ type: 'text', text }] : text }
    })
    messages.push({ role: 'user', content })
  }
  throw new Error('the loop did not end')
}

for (const stream of [false, true]) {
  test(`two tool turns and an answer continue as sampled (${stream ? 'streamed' : 'whole'})`, async () => {
    await using started = await startGateway({ say: script })
    const session = started.gateway.open(sessionRequest())
    const message = await runLoop(anthropicClient(session.endpoint('agent')), stream)
    expect(message).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'Gold is 79 and iron is 26.' }] })
    const { turns } = (await session.close())[0]!
    expect(turns.map(({ parent }) => parent)).toEqual([null, 0, 1])
    expect(turns.map(({ finishReason }) => finishReason.unified)).toEqual(['tool-calls', 'tool-calls', 'stop'])
    expect(turns.map(({ delivered }) => delivered)).toEqual(['delivered', 'delivered', 'delivered'])
    expect(turns[0]!.toolCalls.map(({ arguments: text }) => text)).toEqual(['{"name": "gold"}'])
    // The client rewrites arguments without the space that the policy put between name and value.
    expect(started.gateway.counts().tolerated).toMatchObject({ arguments: expect.any(Number) })
  })
}

test('the events of a stream come in the order of the format', async () => {
  await using started = await startGateway({ say: [{ text: script[0]!, pieceSize: 100 }] })
  const endpoint = started.gateway.open(sessionRequest()).endpoint('agent')
  const all = await readNamedEvents(endpoint, '/messages', {
    messages: [{ role: 'user', content: 'Gold?' }],
    max_tokens: 200,
    tools: [lookup],
  })
  const ids = all.flatMap((event) => (event['type'] === 'content_block_start' ? [(event['content_block'] as { id?: string }).id] : []))
  const shown = all.map(({ type, index, delta }) => {
    const { type: kind } = (delta ?? {}) as { type?: string }
    return [type, index, kind].filter((part) => part !== undefined).join(' ')
  })
  expect(shown.filter((line, index) => line !== shown[index - 1])).toEqual([
    'message_start',
    'ping',
    'content_block_start 0',
    'content_block_delta 0 text_delta',
    'content_block_stop 0',
    'content_block_start 1',
    'content_block_delta 1 input_json_delta',
    'content_block_stop 1',
    'message_delta',
    'message_stop',
  ])
  expect(ids[1]).toMatch(/^[a-zA-Z0-9_-]+$/)
  expect(all.at(-2)).toMatchObject({
    delta: { stop_reason: 'tool_use', stop_sequence: null },
    usage: { output_tokens: expect.any(Number) },
  })
})

test('every base URL and key that its client may be given reaches the agent', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const session = started.gateway.open(sessionRequest())
  const { baseUrl, apiKey } = session.endpoint('agent')
  const body: Anthropic.MessageCreateParamsNonStreaming = { model: 'any', max_tokens: 9, messages: [{ role: 'user', content: 'Hi.' }] }
  const ways = [
    { baseURL: baseUrl, apiKey: 'any' },
    { baseURL: baseUrl.replace(/\/v1$/, ''), apiKey: 'any' },
    { baseURL: started.gateway.url, apiKey },
    { baseURL: started.gateway.url, apiKey: null, authToken: apiKey },
  ]
  for (const way of ways) {
    const client = new Anthropic({ ...way, maxRetries: 0, defaultHeaders: { 'anthropic-beta': 'some-beta-2026-01-01' } })
    expect((await client.messages.create(body)).content).toMatchObject([{ text: 'Fine.' }])
  }
  expect((await session.close())[0]!.turns.length).toBe(ways.length)
})

test('tokens are counted without sampling, as a call then has them', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const session = started.gateway.open(sessionRequest())
  const client = anthropicClient(session.endpoint('agent'))
  const body = { model: 'any', system: 'Be brief.', messages: [{ role: 'user' as const, content: 'Hi there.' }], tools: [lookup] }
  const { input_tokens: counted } = await client.messages.countTokens(body)
  expect(started.engine.requests.length).toBe(0)
  const { usage } = await client.messages.create({ ...body, max_tokens: 9 })
  expect(usage.input_tokens + (usage.cache_read_input_tokens ?? 0)).toBe(counted)
  expect((await session.close())[0]!.turns.length).toBe(1)
})

test('a stop sequence is named, and a cut answer says so', async () => {
  await using started = await startGateway({ say: ['One. END Two.', 'abcdefghij'] })
  const client = anthropicClient(started.gateway.open(sessionRequest()).endpoint('agent'))
  const messages = [{ role: 'user' as const, content: 'Count.' }]
  const stopped = await client.messages.create({ model: 'any', max_tokens: 50, messages, stop_sequences: ['STOP', 'END'] })
  expect(stopped).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'END', content: [{ text: 'One. ' }] })
  const cut = await client.messages.stream({ model: 'any', max_tokens: 3, messages }).finalMessage()
  expect(cut).toMatchObject({ stop_reason: 'max_tokens', stop_sequence: null, content: [{ text: 'abc' }] })
})

test('results: errors, blocks, several in one message, and text behind them', async () => {
  await using started = await startGateway({ say: [`${lookupCall('iron')}\n${lookupCall('tin')}`, 'Done.'] })
  const session = started.gateway.open(sessionRequest())
  const client = anthropicClient(session.endpoint('agent'))
  const request = { model: 'any', max_tokens: 200, tools: [lookup] }
  const messages: Anthropic.MessageParam[] = [
    { role: 'user', content: [{ type: 'text', text: 'Both', cache_control: { type: 'ephemeral' } }] },
  ]
  const first = await client.messages.create({ ...request, messages })
  const [one, two] = first.content.filter((block) => block.type === 'tool_use')
  await client.messages.create({
    ...request,
    messages: [
      ...messages,
      { role: 'assistant', content: first.content },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: two!.id, is_error: true },
          {
            type: 'tool_result',
            tool_use_id: one!.id,
            content: [
              { type: 'text', text: '2' },
              { type: 'text', text: '6' },
            ],
          },
          { type: 'text', text: 'Go on.' },
        ],
      },
    ],
  })
  const [, turn] = (await session.close())[0]!.turns
  expect(turn!.parent).toBe(0)
  expect(turn!.messagesDelta.filter(({ role }) => role !== 'assistant')).toEqual([
    { role: 'tool', content: 'error', toolCallId: two!.id },
    { role: 'tool', content: '26', toolCallId: one!.id },
    { role: 'user', content: 'Go on.' },
  ])
})

test('errors are those that its client knows', async () => {
  await using started = await startGateway({ say: () => 'Fine.', contextLength: 64 })
  const session = started.gateway.open(sessionRequest())
  const client = anthropicClient(session.endpoint('agent'))
  const image = { type: 'image', source: { type: 'url', url: 'http://x' } } as const
  const send = (content: string | Anthropic.ContentBlockParam[]) =>
    client.messages.create({ model: 'any', max_tokens: 5, messages: [{ role: 'user', content }] })
  await expect(send([image])).rejects.toMatchObject({
    status: 400,
    error: { error: { code: 'input_unsupported', param: 'messages[0].content[0].type' } },
  })
  await expect(send([image])).rejects.toBeInstanceOf(Anthropic.BadRequestError)
  await expect(send('long '.repeat(100))).rejects.toMatchObject({
    status: 400,
    error: { type: 'error', error: { code: 'context_length_exceeded' } },
  })
  await session.close()
  await expect(send('Hi.')).rejects.toBeInstanceOf(Anthropic.NotFoundError)
})

test('a stream that fails midway ends in an error, not in an answer', async () => {
  await using started = await startGateway({ say: () => ({ text: 'Half an answer', error: new Error('the engine is gone') }) })
  const client = anthropicClient(started.gateway.open(sessionRequest()).endpoint('agent'))
  const stream = client.messages.stream({ model: 'any', max_tokens: 50, messages: [{ role: 'user', content: 'Hi.' }] })
  await expect(stream.finalMessage()).rejects.toThrow(/the engine is gone/)
})
