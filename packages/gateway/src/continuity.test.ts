import type { GenerateRequest, Trajectory } from '@aworld-train/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lookupCall, lookupTool, openaiClient, post, type Say, sessionRequest, startGateway, until } from './testing/start-gateway.ts'

interface ChatMessage {
  role: string
  content: string | null
  tool_calls?: { id: string }[]
  tool_call_id?: string
}

/** One call of a random agent: its change to the history, its way of asking, and the policy's answer. */
const step = fc.record({
  edit: fc.constantFrom('continue', 'continue', 'continue', 'regenerate', 'rewrite-user', 'drop-last', 'restart'),
  stream: fc.boolean(),
  maxTokens: fc.option(fc.integer({ min: 1, max: 30 })),
  stop: fc.option(fc.constantFrom('e', '}', ' '), { freq: 4 }),
  ends: fc.constantFrom('whole', 'whole', 'whole', 'hang-up', 'engine-error'),
  text: fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    fc.constant(lookupCall('gold')),
    fc.constant(`Both. ${lookupCall('gold')}\n${lookupCall('iron')}`),
    fc.constant('<tool_call>\n{"name": broken}\n</tool_call>'),
    fc.constantFrom('  padded  ', '', '<tool_call>', '\ud83d\ude00 caf\u00e9'),
  ),
  stopToken: fc.boolean(),
})
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

function edited(history: readonly ChatMessage[], { edit }: Step, index: number): ChatMessage[] {
  const opening: ChatMessage[] = [{ role: 'user', content: `Begin ${index}.` }]
  if (edit === 'restart' || history.length === 0) return opening
  const messages = history.map((message) => ({ ...message }))
  if (edit === 'regenerate') {
    while (messages.length > 1 && messages.at(-1)!.role === 'assistant') messages.pop()
    return messages
  }
  if (edit === 'drop-last' && messages.length > 2) messages.splice(-2)
  if (edit === 'rewrite-user') messages[0]!.content += ' Rewritten.'
  const last = messages.at(-1)!
  for (const { id } of last.tool_calls ?? []) messages.push({ role: 'tool', tool_call_id: id, content: `result ${index}` })
  if (last.role === 'assistant' && !last.tool_calls) messages.push({ role: 'user', content: `Next ${index}.` })
  return messages
}

/** Checks that each prompt continues its parent, and that each turn holds exactly what the engine sampled for it. */
function checkRecord({ turns }: Trajectory, sampled: ReadonlyMap<Int32Array, { ids: number[]; logprobs: number[] }>) {
  for (const [index, turn] of turns.entries()) {
    expect(turn.index).toBe(index)
    const drawn = sampled.get(turn.promptTokenIds)!
    expect(Array.from(turn.completionTokenIds)).toEqual(drawn.ids)
    expect(Array.from(turn.rolloutLogprobs)).toEqual(drawn.logprobs)
    expect(turn.delivered).not.toBe('pending')
    if (turn.parent === null) {
      expect(turn.branchReasons.length).toBeGreaterThan(0)
      continue
    }
    expect(turn.parent).toBeLessThan(index)
    const parent = turns[turn.parent]!
    expect(parent.delivered).toBe('delivered')
    const prefix = [...parent.promptTokenIds, ...parent.completionTokenIds]
    expect(Array.from(turn.promptTokenIds.subarray(0, prefix.length))).toEqual(prefix)
    expect(turn.promptTokenIds.length).toBeGreaterThan(prefix.length)
  }
}

test('whatever agents do, prompts extend what was sampled and every sampled token is in one turn', async () => {
  const planned = new Map<string, Step>()
  const sampled = new Map<Int32Array, { ids: number[]; logprobs: number[] }>()
  const hold = (request: GenerateRequest): Say => {
    const { text, stopToken, ends } = planned.get(`${request.affinity}:${request.random.turn}`)!
    const drawn = { ids: [] as number[], logprobs: [] as number[] }
    sampled.set(request.promptTokenIds, drawn)
    // Wraps the gateway's own callback, to note the tokens that it is told of as drawn.
    const { onTokens } = request
    Object.assign(request, {
      onTokens(ids: Int32Array, logprobs: Float32Array, version?: number) {
        drawn.ids.push(...ids)
        drawn.logprobs.push(...logprobs)
        onTokens?.(ids, logprobs, version)
      },
    })
    if (ends === 'engine-error') return { text, stop: stopToken, error: new Error('the engine broke') }
    return { text, stop: stopToken, pieceSize: 3, ...(ends === 'hang-up' && { pieceDelayMs: 3 }) }
  }
  await using started = await startGateway({ say: hold })
  const { gateway, engine } = started
  let runs = 0

  const runSteps = async (steps: readonly Step[]) => {
    const rollout = `random-${runs++}`
    const session = gateway.open(sessionRequest({ rollout }))
    const endpoint = session.endpoint('agent')
    let history: ChatMessage[] = []
    for (const [index, planStep] of steps.entries()) {
      planned.set(`${rollout}.0.agent:${index}`, planStep)
      history = edited(history, planStep, index)
      const { maxTokens, stop, stream } = planStep
      const body = { messages: history, tools: [lookupTool], max_tokens: maxTokens, stop, stream, model: 'any' }
      if (planStep.ends === 'hang-up') {
        const controller = new AbortController()
        const call = post(endpoint, body, { signal: controller.signal }).catch(() => null)
        const { calls } = gateway.counts()
        await until(() => gateway.counts().calls > calls || gateway.counts().inFlight > 0)
        controller.abort()
        await call
        await until(() => gateway.counts().inFlight === 0)
      } else {
        const client = openaiClient(endpoint).chat.completions
        const request = body as unknown as Parameters<typeof client.create>[0]
        const completion = await (stream
          ? client.stream({ ...request, stream: true }).finalChatCompletion()
          : client.create({ ...request, stream: false })
        ).catch(() => null)
        if (completion) history = [...history, completion.choices[0]!.message as ChatMessage]
      }
    }
    return session.close()
  }

  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(step, { minLength: 1, maxLength: 7 }), { minLength: 1, maxLength: 3 }), async (agents) => {
      const before = engine.sampledTokens()
      const records = await Promise.all(agents.map(runSteps))
      const turns = records.flatMap(([trajectory]) => trajectory!.turns)
      for (const [trajectory] of records) checkRecord(trajectory!, sampled)
      expect(turns.reduce((sum, turn) => sum + turn.completionTokenIds.length, 0)).toBe(engine.sampledTokens() - before)
    }),
    { numRuns: 40 },
  )
  expect(gateway.counts().continuations).toBeGreaterThan(20)
})

test('two calls with equal prompts are two turns, and a history is continued by the ids it carries', async () => {
  await using started = await startGateway({ say: (_, call) => (call < 2 ? lookupCall('gold') : '79.') })
  const session = started.gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent')).chat.completions
  const request = { model: 'any', messages: [{ role: 'user' as const, content: 'Gold?' }], tools: [lookupTool] }
  const first = (await client.create(request)).choices[0]!.message
  const second = (await client.create(request)).choices[0]!.message
  expect(first.tool_calls![0]!.id).not.toBe(second.tool_calls![0]!.id)
  for (const message of [first, second]) {
    const result = { role: 'tool' as const, tool_call_id: message.tool_calls![0]!.id, content: '79' }
    await client.create({ ...request, messages: [...request.messages, message, result] })
  }
  const turns = (await session.close())[0]!.turns
  expect(turns.map(({ parent }) => parent)).toEqual([null, null, 0, 1])
  expect(turns.map(({ branchReasons }) => branchReasons.length > 0)).toEqual([true, true, false, false])
})

test('an edited past begins a branch with its reason, and both branches go on', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { gateway } = started
  const session = gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent')).chat.completions
  const ask = async (messages: { role: 'user' | 'assistant'; content: string }[]) =>
    (await client.create({ model: 'any', messages })).choices[0]!.message.content!
  const [hello, edited] = [
    { role: 'user' as const, content: 'Hello.' },
    { role: 'user' as const, content: 'Goodbye.' },
  ]
  const answer = { role: 'assistant' as const, content: await ask([hello]) }
  await ask([hello, answer, { role: 'user', content: 'More.' }])
  await ask([edited, answer, { role: 'user', content: 'More.' }])
  await ask([hello, answer, { role: 'user', content: 'Other.' }])
  await ask([{ ...hello, content: `${hello.content}\n` }, answer, { role: 'user', content: 'More.' }])
  const turns = (await session.close())[0]!.turns
  expect(turns.map(({ parent }) => parent)).toEqual([null, 0, null, 0, null])
  expect(gateway.counts()).toMatchObject({ continuations: 2, branches: { root: 1, 'no-match': 2 }, tolerated: {} })
})

test('what clients do to a history is tolerated and counted', async () => {
  await using started = await startGateway({ say: [lookupCall('gold'), '79.'] })
  const session = started.gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent')).chat.completions
  const messages = [{ role: 'user' as const, content: 'Gold?' }]
  const { message } = (await client.create({ model: 'any', messages, tools: [lookupTool] })).choices[0]!
  const call = message.tool_calls![0]!
  const body = {
    tools: [lookupTool],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Gold?', annotations: [], role: 'user' }] },
      {
        role: 'assistant',
        content: '',
        refusal: null,
        annotations: [],
        reasoning_content: 'Hm.',
        tool_calls: [{ ...call, function: { name: 'lookup', arguments: '{ "name":"gold" }', parsed_arguments: {} } }],
      },
      { role: 'tool', tool_call_id: call.id, content: [{ type: 'text', text: '79' }], name: 'lookup' },
    ],
  }
  expect((await post(session.endpoint('agent'), body)).status).toBe(200)
  const turns = (await session.close())[0]!.turns
  expect(turns[1]!.parent).toBe(0)
  const { tolerated } = started.gateway.counts()
  expect(Object.values(tolerated).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0)
})

test('a trailing assistant message is continued, and so is the whole answer after it', async () => {
  await using started = await startGateway({ say: [' is 79.', 'Yes.'] })
  const { chat, gateway } = started
  const session = gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent')).chat.completions
  const [question, prefix] = [
    { role: 'user' as const, content: 'Gold?' },
    { role: 'assistant' as const, content: 'Its number' },
  ]
  const { message } = (await client.create({ model: 'any', messages: [question, prefix] })).choices[0]!
  expect(message.content).toBe(' is 79.')
  const whole = { role: 'assistant' as const, content: prefix.content + message.content }
  await client.create({ model: 'any', messages: [question, whole, { role: 'user', content: 'Sure?' }] })
  const turns = (await session.close())[0]!.turns
  expect(chat.decode(turns[0]!.promptTokenIds)).toMatch(/assistant\nIts number$/)
  expect(chat.decode(turns[0]!.completionTokenIds, { skipSpecialTokens: true })).toBe(' is 79.')
  expect(turns[1]!.parent).toBe(0)
})
