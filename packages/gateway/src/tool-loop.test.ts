import type { Turn } from '@aworld-train/core'
import type OpenAI from 'openai'
import { expect, test } from 'vitest'
import { lookupCall, lookupTool, openaiClient, sessionRequest, startGateway } from './testing/start-gateway.ts'

type ChatMessage = OpenAI.ChatCompletionMessageParam

const script = [`Let me look.\n${lookupCall('gold')}`, lookupCall('iron'), 'Gold is 79 and iron is 26.']
const results: Readonly<Record<string, string>> = { gold: '79', iron: '26' }

/** The loop every agent runs, with whole answers or streamed ones. */
async function runLoop(client: OpenAI, stream: boolean, answers = results): Promise<{ messages: ChatMessage[]; answer: string | null }> {
  const messages: ChatMessage[] = [
    { role: 'system', content: 'Answer with the tools.' },
    { role: 'user', content: 'Gold and iron?' },
  ]
  for (let turn = 0; turn < 5; turn++) {
    const request = { model: 'any', messages, tools: [lookupTool], temperature: 0.1 }
    const completion = stream
      ? await client.chat.completions.stream({ ...request, stream_options: { include_usage: true } }).finalChatCompletion()
      : await client.chat.completions.create(request)
    const { message, finish_reason: finishReason } = completion.choices[0]!
    expect(completion.usage?.total_tokens).toBeGreaterThan(0)
    messages.push(message)
    if (finishReason !== 'tool_calls') return { messages, answer: message.content }
    for (const call of message.tool_calls ?? []) {
      if (call.type !== 'function') throw new Error(`unexpected ${call.type}`)
      const { name } = JSON.parse(call.function.arguments) as { name: string }
      messages.push({ role: 'tool', tool_call_id: call.id, content: answers[name]! })
    }
  }
  throw new Error('the loop did not end')
}

function expectContinuation(turns: readonly Turn[]) {
  for (const turn of turns) {
    if (turn.parent === null) continue
    const parent = turns[turn.parent]!
    const history = [...parent.promptTokenIds, ...parent.completionTokenIds]
    expect(Array.from(turn.promptTokenIds.subarray(0, history.length))).toEqual(history)
  }
}

for (const stream of [false, true]) {
  test(`two tool turns and an answer continue as sampled (${stream ? 'streamed' : 'whole'})`, async () => {
    await using started = await startGateway({ say: script })
    const { gateway, engine, chat } = started
    const session = gateway.open(sessionRequest())
    const { answer, messages } = await runLoop(openaiClient(session.endpoint('agent')), stream)
    expect(answer).toBe('Gold is 79 and iron is 26.')

    const [trajectory] = await session.close()
    const turns = trajectory!.turns
    expect(turns.map(({ parent }) => parent)).toEqual([null, 0, 1])
    expect(turns.map(({ branchReasons }) => branchReasons.length)).toEqual([1, 0, 0])
    expect(turns.map(({ finishReason }) => finishReason.unified)).toEqual(['tool-calls', 'tool-calls', 'stop'])
    expect(turns.map(({ delivered }) => delivered)).toEqual(['delivered', 'delivered', 'delivered'])
    expectContinuation(turns)
    for (const [index, turn] of turns.entries()) {
      expect(Array.from(turn.promptTokenIds)).toEqual(Array.from(engine.requests[index]!.promptTokenIds))
      expect(chat.decode(turn.completionTokenIds, { skipSpecialTokens: true })).toBe(script[index])
      expect(turn.rolloutLogprobs.length).toBe(turn.completionTokenIds.length)
      expect(turn.weightVersions).toEqual([{ fromToken: 0, version: 0 }])
      expect(turn.sampling.temperature).toBe(1)
    }
    expect(turns[0]!.toolCalls).toMatchObject([{ name: 'lookup', arguments: '{"name": "gold"}' }])
    expect(turns[0]!.message.content).toBe('Let me look.')
    expect(turns[1]!.messagesDelta.map(({ role }) => role)).toContain('tool')
    const ids = messages.flatMap((message) => ('tool_calls' in message ? (message.tool_calls ?? []).map(({ id }) => id) : []))
    expect(new Set(ids).size).toBe(2)
    expect(gateway.counts()).toMatchObject({ calls: 3, failures: 0, continuations: 2, inFlight: 0, ignored: { temperature: 3 } })
  })
}

test('the record says which turn’s call was delivered as text, and when its first token came', async () => {
  const broken = lookupCall('gold').replace('{', '{{')
  await using started = await startGateway({ say: [`Let me look.\n${broken}`, 'Gold is 79.'] })
  const session = started.gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent'))
  const messages: ChatMessage[] = [{ role: 'user', content: 'Gold?' }]
  for (let turn = 0; turn < 2; turn++) {
    const completion = await client.chat.completions.create({ model: 'any', messages, tools: [lookupTool] })
    messages.push(completion.choices[0]!.message, { role: 'user', content: 'Go on.' })
  }
  const [trajectory] = await session.close()
  expect(trajectory!.turns.map(({ unparsed }) => unparsed)).toEqual([['call-invalid'], undefined])
  expect(started.gateway.counts().parseIssues).toEqual({ 'call-invalid': 1 })
  for (const { timing, firstTokenAt } of trajectory!.turns) {
    expect(firstTokenAt).toBeGreaterThanOrEqual(timing.startedAt)
    expect(firstTokenAt).toBeLessThanOrEqual(timing.endedAt)
  }
})

test.each([
  ['tool-error', true],
  ['answer', undefined],
  [undefined, undefined],
] as const)('an answer whose call cannot be read says so where the route has malformedCalls: %s', async (malformedCalls, malformed) => {
  const completions = [
    lookupCall('gold').replace('{', '{{'),
    { text: '<tool_call>\n{"name"', stop: false },
    lookupCall('gold'),
    'Gold is 79.',
  ]
  await using started = await startGateway({ say: completions, malformedCalls })
  const client = openaiClient(started.gateway.open(sessionRequest()).endpoint('agent'))
  const choices: unknown[] = []
  for (let call = 0; call < completions.length; call++) {
    const { choices: answered } = await client.chat.completions.create({
      model: 'any',
      messages: [{ role: 'user', content: 'Gold?' }],
      tools: [lookupTool],
    })
    choices.push((answered[0] as { malformed_call?: unknown }).malformed_call)
  }
  // A call that was cut by its length is not one that the policy got wrong.
  expect(choices).toEqual([malformed, undefined, undefined, undefined])
})

test('the policy reads answers of tools that were cut, the same ones in every turn, and the record has what it read', async () => {
  const results = { gold: 'g'.repeat(300), iron: `${'i'.repeat(200)}é${'j'.repeat(200)}` }
  await using started = await startGateway({ say: script, toolAnswers: { maxTokens: 60, cut: 'middle' } })
  const { gateway, engine, chat } = started
  const session = gateway.open(sessionRequest())
  await runLoop(openaiClient(session.endpoint('agent')), false, results)
  const [trajectory] = await session.close()
  expect(trajectory!.turns.map(({ parent }) => parent)).toEqual([null, 0, 1])
  expectContinuation(trajectory!.turns)
  const answers = trajectory!.turns.flatMap(({ messagesDelta }) => messagesDelta.filter(({ role }) => role === 'tool'))
  expect(answers.map(({ content }) => content)).toEqual([
    expect.stringMatching(/^g+\n\[\d+ characters left out\]\ng+$/),
    expect.stringMatching(/^i+\n\[\d+ characters left out\]\nj+$/),
  ])
  for (const { content } of answers) {
    expect(chat.encode(content!).length).toBeLessThanOrEqual(60)
    expect(chat.decode(engine.requests.at(-1)!.promptTokenIds)).toContain(content)
  }
})

test('whole and streamed answers are recorded alike', async () => {
  const records: Turn[][] = []
  for (const stream of [false, true]) {
    await using started = await startGateway({ say: script })
    const session = started.gateway.open(sessionRequest())
    await runLoop(openaiClient(session.endpoint('agent')), stream)
    records.push((await session.close())[0]!.turns)
  }
  const [whole, streamed] = records.map((turns) =>
    turns.map(({ timing: _, firstTokenAt: _first, messagesDelta, ...turn }) => ({ ...turn, delta: messagesDelta.length })),
  )
  expect(streamed).toEqual(whole)
})

test('an answer carries logprobs, ids and unique response ids on request', async () => {
  await using started = await startGateway({ say: ['Hi', 'Hi', 'Hi'] })
  const session = started.gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent'))
  const request = { model: 'any', messages: [{ role: 'user' as const, content: 'Say hi.' }] }
  const plain = await client.chat.completions.create(request)
  const detailed = await client.chat.completions.create({ ...request, logprobs: true, top_logprobs: 0, ...{ return_token_ids: true } })
  expect(plain.id).not.toBe(detailed.id)
  expect(plain.choices[0]!.logprobs).toBeNull()
  expect(plain.choices[0]).not.toHaveProperty('token_ids')
  expect(detailed.choices[0]).toHaveProperty('token_ids', [72, 105, 257])
  expect(detailed).toHaveProperty('prompt_token_ids', Array.from(started.engine.requests[1]!.promptTokenIds))
  expect(detailed.choices[0]!.logprobs!.content!.map(({ token, logprob }) => [token, logprob])).toEqual([
    ['H', -0.5],
    ['i', -0.25],
    ['<|im_end|>', -0.125],
  ])

  const stream = await client.chat.completions.create({ ...request, stream: true, logprobs: true, ...{ return_token_ids: true } })
  const chunks: OpenAI.ChatCompletionChunk[] = []
  for await (const chunk of stream) chunks.push(chunk)
  const ids = chunks.flatMap((chunk) => (chunk.choices[0] as unknown as { token_ids?: number[] }).token_ids ?? [])
  expect(ids).toEqual([72, 105, 257])
  expect(chunks.flatMap((chunk) => chunk.choices[0]!.logprobs?.content ?? []).map(({ logprob }) => logprob)).toEqual([-0.5, -0.25, -0.125])
  expect(chunks[0]).toHaveProperty('prompt_token_ids')
  expect(chunks.map((chunk) => chunk.choices[0]!.delta.content ?? '').join('')).toBe('Hi')
})

test('with tool_choice none a call stays text, and the next turn continues it', async () => {
  await using started = await startGateway({ say: [lookupCall('gold'), 'Done.'] })
  const session = started.gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent'))
  const messages: ChatMessage[] = [{ role: 'user', content: 'Gold?' }]
  const first = await client.chat.completions.create({ model: 'any', messages, tools: [lookupTool], tool_choice: 'none' })
  expect(first.choices[0]!.message.tool_calls).toBeUndefined()
  expect(first.choices[0]!.message.content).toContain('<tool_call>')
  messages.push(first.choices[0]!.message, { role: 'user', content: 'And?' })
  await client.chat.completions.create({ model: 'any', messages, tools: [lookupTool] })
  expectContinuation((await session.close())[0]!.turns)
})

test('a stop string of the agent ends the completion; what was sampled stays in the record', async () => {
  await using started = await startGateway({ say: [{ text: 'One. END Two.', pieceDelayMs: 0 }, 'Three.'] })
  const session = started.gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent'))
  const messages: ChatMessage[] = [{ role: 'user', content: 'Count.' }]
  const first = await client.chat.completions.create({ model: 'any', messages, stop: ['END'] })
  expect(first.choices[0]).toMatchObject({ message: { content: 'One. ' }, finish_reason: 'stop' })
  messages.push(first.choices[0]!.message, { role: 'user', content: 'More.' })
  await client.chat.completions.create({ model: 'any', messages })
  const turns = (await session.close())[0]!.turns
  expect(started.chat.decode(turns[0]!.completionTokenIds)).toBe('One. END')
  expect(turns.map(({ sampling }) => sampling.stop)).toEqual([['END'], []])
  expect(turns[0]!.finishReason).toEqual({ unified: 'stop', raw: 'stop-string' })
  expect(turns[0]!.completionTokenIds.length + turns[1]!.completionTokenIds.length).toBe(started.engine.sampledTokens())
  expectContinuation(turns)
})

test('the agent may shorten a completion and may not lengthen it', async () => {
  await using started = await startGateway({ say: () => 'abcdefghij' })
  const session = started.gateway.open(sessionRequest({ sampling: { ...sessionRequest().sampling, maxTokens: 6 } }))
  const client = openaiClient(session.endpoint('agent'))
  const request = { model: 'any', messages: [{ role: 'user' as const, content: 'Go.' }] }
  const short = await client.chat.completions.create({ ...request, max_tokens: 3 })
  const long = await client.chat.completions.create({ ...request, max_completion_tokens: 500 })
  expect(short.choices[0]).toMatchObject({ message: { content: 'abc' }, finish_reason: 'length' })
  expect(long.choices[0]).toMatchObject({ message: { content: 'abcdef' }, finish_reason: 'length' })
  // The record holds the sampling that was used, not the one that was asked for.
  const turns = (await session.close())[0]!.turns
  expect(turns.map(({ sampling }) => sampling)).toEqual(started.engine.requests.map(({ sampling }) => sampling))
  expect(turns.map(({ sampling }) => sampling.maxTokens)).toEqual([3, 6])
})
