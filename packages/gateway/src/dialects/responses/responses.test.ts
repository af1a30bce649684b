import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { readNamedEvents } from '../../testing/read-named-events.ts'
import { lookupCall, openaiClient, sessionRequest, startGateway } from '../../testing/start-gateway.ts'

type Tool = OpenAI.Responses.FunctionTool
type Item = OpenAI.Responses.ResponseInputItem

const script = [`Let me look.\n${lookupCall('gold')}`, `${lookupCall('iron')}\n${lookupCall('tin')}`, 'Gold is 79 and iron is 26.']
const results: Readonly<Record<string, string>> = { gold: '79', iron: '26', tin: '50' }

const lookup: Tool = {
  type: 'function',
  name: 'lookup',
  description: 'Looks up an element.',
  parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  strict: null,
}

function answerCalls(response: OpenAI.Responses.Response): Item[] {
  return response.output.flatMap((item): Item[] => {
    if (item.type !== 'function_call') return []
    const { name } = JSON.parse(item.arguments) as { name: string }
    return [{ type: 'function_call_output', call_id: item.call_id, output: results[name]! }]
  })
}

/** The loop every agent runs: with the whole history, or with the id of the answer before. */
async function runLoop(client: OpenAI, how: { readonly stream: boolean; readonly chain: boolean }): Promise<string> {
  let input: Item[] = [{ role: 'user', content: 'Gold and iron?' }]
  let previous: string | undefined
  for (let turn = 0; turn < 5; turn++) {
    const request = { model: 'any', instructions: 'Answer with the tools.', input, tools: [lookup], temperature: 0.1 }
    const body = previous === undefined ? request : { ...request, previous_response_id: previous }
    const response = how.stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body)
    expect(response.status).toBe('completed')
    expect(response.usage?.total_tokens).toBeGreaterThan(0)
    const outputs = answerCalls(response)
    if (outputs.length === 0) return response.output_text
    if (how.chain) previous = response.id
    input = how.chain ? outputs : [...input, ...(response.output as Item[]), ...outputs]
  }
  throw new Error('the loop did not end')
}

for (const stream of [false, true]) {
  for (const chain of [false, true]) {
    test(`two tool turns continue as sampled (${stream ? 'streamed' : 'whole'}, ${chain ? 'by id' : 'by history'})`, async () => {
      await using started = await startGateway({ say: script })
      const session = started.gateway.open(sessionRequest())
      expect(await runLoop(openaiClient(session.endpoint('agent')), { stream, chain })).toBe('Gold is 79 and iron is 26.')
      const turns = (await session.close())[0]!.turns
      expect(turns.map(({ parent }) => parent)).toEqual([null, 0, 1])
      expect(turns.map(({ finishReason }) => finishReason.unified)).toEqual(['tool-calls', 'tool-calls', 'stop'])
      expect(turns.map(({ delivered }) => delivered)).toEqual(['delivered', 'delivered', 'delivered'])
      expect(turns[1]!.toolCalls.map(({ arguments: text }) => text)).toEqual(['{"name": "iron"}', '{"name": "tin"}'])
      expect(started.gateway.counts().tolerated).toEqual({})
    })
  }
}

test('the events of a stream come in the order of the format, numbered without a gap', async () => {
  await using started = await startGateway({ say: [{ text: script[0]!, pieceSize: 100 }] })
  const endpoint = started.gateway.open(sessionRequest()).endpoint('agent')
  const all = await readNamedEvents(endpoint, '/responses', { input: 'Gold?', tools: [lookup] })
  expect(all.map(({ sequence_number: number }) => number)).toEqual(all.map((_, index) => index))
  const shown = all.map(({ type, output_index: index, content_index: part }) =>
    [String(type).replace('response.', ''), index, part].filter((value) => value !== undefined).join(' '),
  )
  expect(shown.filter((line, index) => line !== shown[index - 1])).toEqual([
    'created',
    'in_progress',
    'output_item.added 0',
    'content_part.added 0 0',
    'output_text.delta 0 0',
    'output_text.done 0 0',
    'content_part.done 0 0',
    'output_item.done 0',
    'output_item.added 1',
    'function_call_arguments.delta 1',
    'function_call_arguments.done 1',
    'output_item.done 1',
    'completed',
  ])
  const { response } = all.at(-1) as { response: OpenAI.Responses.Response }
  const done = all.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)
  expect(response.output).toEqual(done)
  expect(new Set(response.output.map(({ id }) => id)).size).toBe(2)
})

test('answers are kept: read, deleted, referred to by item, and unknown to other agents', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const two = [
    { name: 'agent', trainable: true },
    { name: 'other', trainable: true },
  ]
  const session = started.gateway.open(sessionRequest({ agents: two }))
  const client = openaiClient(session.endpoint('agent'))
  const kept = await client.responses.create({ model: 'any', input: 'Hi.' })
  const secret = await client.responses.create({ model: 'any', input: 'Hi.', store: false })
  expect(await client.responses.retrieve(kept.id)).toMatchObject({ id: kept.id, output: kept.output, usage: kept.usage })

  const [item] = kept.output
  const input: Item[] = [
    { role: 'user', content: 'Hi.' },
    { type: 'item_reference', id: item!.id! },
    { role: 'user', content: 'And?' },
  ]
  await client.responses.create({ model: 'any', input })
  const turns = session.trajectories()[0]!.turns
  expect(turns.at(-1)!.parent).not.toBeNull()

  const unknown = { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' }
  const follow = (from: OpenAI, id: string) => from.responses.create({ model: 'any', input: 'And?', previous_response_id: id })
  await expect(follow(client, secret.id)).rejects.toMatchObject(unknown)
  await expect(follow(openaiClient(session.endpoint('other')), kept.id)).rejects.toMatchObject(unknown)
  await client.responses.delete(kept.id)
  await expect(follow(client, kept.id)).rejects.toMatchObject(unknown)
  await expect(client.responses.retrieve(kept.id)).rejects.toMatchObject({ status: 404, code: 'response_not_found' })
  await expect(client.responses.create({ model: 'any', input })).rejects.toMatchObject({ status: 400, code: 'item_not_found' })
})

test('instructions are those of each call, not of the answer before', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const client = openaiClient(started.gateway.open(sessionRequest()).endpoint('agent'))
  const first = await client.responses.create({ model: 'any', input: 'Hi.', instructions: 'OLD' })
  await client.responses.create({ model: 'any', input: 'And?', instructions: 'NEW', previous_response_id: first.id })
  const [, prompt] = started.engine.requests.map(({ promptTokenIds }) => started.chat.decode(promptTokenIds))
  expect(prompt).toContain('NEW')
  expect(prompt).not.toContain('OLD')
  expect(prompt).toMatch(/Hi\..*Fine\..*And\?/s)
})

test('a cut answer is incomplete, and says why', async () => {
  await using started = await startGateway({ say: () => 'abcdefghij' })
  const client = openaiClient(started.gateway.open(sessionRequest()).endpoint('agent'))
  const request = { model: 'any', input: 'Go.', max_output_tokens: 3 }
  const whole = await client.responses.create(request)
  const streamed = await client.responses.stream(request).finalResponse()
  for (const response of [whole, streamed]) {
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, output_text: 'abc' })
    expect(response.output).toMatchObject([{ type: 'message', status: 'incomplete' }])
  }
})

test('tools with plain text are told as functions and answered as text', async () => {
  const call = '<tool_call>\n{"name": "shell", "arguments": {"input": "ls -l\\n"}}\n</tool_call>'
  for (const stream of [false, true]) {
    await using started = await startGateway({ say: [call, 'Done.'] })
    const session = started.gateway.open(sessionRequest())
    const client = openaiClient(session.endpoint('agent'))
    const request = { model: 'any', tools: [{ type: 'custom' as const, name: 'shell', description: 'Runs it.' }] }
    const question: Item = { role: 'user', content: 'List.' }
    const body = { ...request, input: [question] }
    const response = stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body)
    expect(response.output).toMatchObject([{ type: 'custom_tool_call', name: 'shell', input: 'ls -l\n' }])
    const [item] = response.output as OpenAI.Responses.ResponseCustomToolCall[]
    const output: Item = { type: 'custom_tool_call_output', call_id: item!.call_id, output: 'empty' }
    await client.responses.create({ ...request, input: [question, item as Item, output] })
    expect((await session.close())[0]!.turns.map(({ parent }) => parent)).toEqual([null, 0])
  }
})

test('a stream that fails midway ends in an error, not in an answer', async () => {
  await using started = await startGateway({ say: () => ({ text: 'Half an answer', error: new Error('the engine is gone') }) })
  const endpoint = started.gateway.open(sessionRequest()).endpoint('agent')
  const all = await readNamedEvents(endpoint, '/responses', { input: 'Hi.' })
  expect(all.slice(-2)).toMatchObject([
    { type: 'response.failed', response: { status: 'failed', error: { message: 'the engine is gone' } } },
    { type: 'error', message: 'the engine is gone' },
  ])
  expect(all.map(({ sequence_number: number }) => number)).toEqual(all.map((_, index) => index))
  const client = openaiClient(endpoint)
  const stream = await client.responses.create({ model: 'any', input: 'Hi.', stream: true })
  const read = async () => {
    for await (const event of stream) if (event.type === 'response.completed') return event
    return null
  }
  await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError)
})

test('tokens are counted without sampling', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const client = openaiClient(started.gateway.open(sessionRequest()).endpoint('agent'))
  const request = { model: 'any', input: 'Hi there.', instructions: 'Be brief.', tools: [lookup] }
  const { input_tokens: counted } = await client.responses.inputTokens.count(request)
  expect(started.engine.requests.length).toBe(0)
  expect((await client.responses.create(request)).usage?.input_tokens).toBe(counted)
})
