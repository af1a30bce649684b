import { toTrainingSamples } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import type { GatewayWarning } from './options.ts'
import { episodeOf } from './testing/episode-of.ts'
import { lookupCall, lookupTool, openaiClient, post, sessionRequest, startGateway, until } from './testing/start-gateway.ts'

const question = { role: 'user' as const, content: 'Gold?' }

describe('a retried call whose first answer was lost', () => {
  test('goes on from the answer that came; the lost one is kept and not trained', async () => {
    await using started = await startGateway({
      say: (_, call) =>
        call === 0 ? { text: lookupCall('gold'), pieceSize: 1, pieceDelayMs: 5 } : call === 1 ? lookupCall('gold') : '79.',
    })
    const { gateway, engine } = started
    const session = gateway.open(sessionRequest())
    const body = { model: 'any', messages: [question], tools: [lookupTool] }
    const controller = new AbortController()
    const lost = post(session.endpoint('agent'), body, { signal: controller.signal }).catch(() => null)
    await until(() => engine.sampledTokens() > 3)
    controller.abort()
    await lost
    await until(() => gateway.counts().inFlight === 0)
    const client = openaiClient(session.endpoint('agent')).chat.completions
    const { message } = (await client.create(body)).choices[0]!
    const result = { role: 'tool' as const, tool_call_id: message.tool_calls![0]!.id, content: '79' }
    await client.create({ ...body, messages: [question, message, result] })
    const record = await session.close()
    const turns = record[0]!.turns
    expect(turns.map(({ parent, delivered }) => [parent, delivered])).toEqual([
      [null, 'abandoned'],
      [null, 'delivered'],
      [1, 'delivered'],
    ])
    const { samples, untrained, sampled } = toTrainingSamples(episodeOf(record))
    expect(samples.map(({ provenance }) => provenance.turns)).toEqual([[1, 2]])
    expect(untrained).toEqual({ 'abandoned-turn': turns[0]!.completionTokenIds.length })
    expect(sampled).toBe(engine.sampledTokens())
  })
})

describe('a turn that was cut', () => {
  test('by length: the next prompt holds it as it was sampled, closed with mask 0', async () => {
    await using started = await startGateway({ say: ['A long answer about gold.', 'Yes.'] })
    const { chat, gateway } = started
    const session = gateway.open(sessionRequest())
    const client = openaiClient(session.endpoint('agent')).chat.completions
    const { message, finish_reason: reason } = (await client.create({ model: 'any', messages: [question], max_tokens: 6 })).choices[0]!
    expect([message.content, reason]).toEqual(['A long', 'length'])
    await client.create({ model: 'any', messages: [question, message, { role: 'user', content: 'Go on.' }] })
    const record = await session.close()
    const [first, second] = record[0]!.turns
    expect(second!.parent).toBe(0)
    const added = second!.promptTokenIds.subarray(first!.promptTokenIds.length)
    expect(chat.decode(added)).toBe('A long<|im_end|>\n<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n')
    const [sample] = toTrainingSamples(episodeOf(record)).samples
    const trained = sample!.tokenIds.filter((_, index) => sample!.lossMask[index] === 1)
    expect(chat.decode(trained)).toBe('A longYes.<|im_end|>')
  })

  test.each([false, true])(
    'in the middle of a character (streamed: %s): its bytes stay in the prompt, the client sees whole characters',
    async (stream) => {
      await using started = await startGateway({ say: ['Au 🥇!', 'Yes.'] })
      const { chat, gateway } = started
      const session = gateway.open(sessionRequest())
      const client = openaiClient(session.endpoint('agent')).chat.completions
      const request = { model: 'any', messages: [question], max_tokens: 5 }
      const completion = stream
        ? await client.stream({ ...request, stream: true }).finalChatCompletion()
        : await client.create({ ...request, stream: false })
      const { message } = completion.choices[0]!
      expect(message.content).toMatch(/^Au \ufffd?$/)
      await client.create({
        model: 'any',
        messages: [question, { role: 'assistant', content: message.content }, { role: 'user', content: 'Go on.' }],
      })
      const [first, second] = (await session.close())[0]!.turns
      expect(Array.from(first!.completionTokenIds)).toEqual([...chat.encode('Au 🥇!').subarray(0, 5)])
      expect(second).toMatchObject({ parent: 0, branchReasons: [] })
      const prefix = [...first!.promptTokenIds, ...first!.completionTokenIds]
      expect(Array.from(second!.promptTokenIds.subarray(0, prefix.length))).toEqual(prefix)
      expect(chat.decode(second!.promptTokenIds.subarray(prefix.length))).toMatch(/^<\|im_end\|>\n<\|im_start\|>user\nGo on\./)
    },
  )

  test('by a stop string: what was sampled stays, what the client sees ends before it', async () => {
    await using started = await startGateway({ say: ['Gold. END of it', 'Yes.'] })
    const { chat, gateway } = started
    const session = gateway.open(sessionRequest())
    const client = openaiClient(session.endpoint('agent')).chat.completions
    const { message } = (await client.create({ model: 'any', messages: [question], stop: ['END'] })).choices[0]!
    expect(message.content!.trim()).toBe('Gold.')
    await client.create({ model: 'any', messages: [question, message, { role: 'user', content: 'Go on.' }] })
    const [first, second] = (await session.close())[0]!.turns
    expect(chat.decode(first!.completionTokenIds)).toContain('Gold. END')
    expect(second!.parent).toBe(0)
    expect(chat.decode(second!.promptTokenIds)).toContain(`${chat.decode(first!.completionTokenIds)}<|im_end|>\n<|im_start|>user\nGo on.`)
  })
})

test('a long conversation is read piece by piece, and its prompts are what a single reading gives', async () => {
  await using started = await startGateway({ say: (_, call) => (call % 2 === 0 ? lookupCall('gold') : 'Fine.'), contextLength: 200_000 })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent')).chat.completions
  const messages: Parameters<typeof client.create>[0]['messages'] = [{ role: 'user', content: `Long: ${'gold ünï "\\" '.repeat(1500)}` }]
  for (let call = 0; call < 6; call++) {
    const body = { model: 'any', messages, tools: [lookupTool] }
    const { message } = (await client.create(body)).choices[0]!
    // A fresh session parses and renders all of it at once.
    const fresh = gateway.open(sessionRequest({ rollout: `fresh-${call}` }))
    await openaiClient(fresh.endpoint('agent')).chat.completions.create(body)
    await fresh.close()
    const [own, other] = engine.requests.slice(-2)
    expect([...own!.promptTokenIds]).toEqual([...other!.promptTokenIds])
    const id = message.tool_calls?.[0]?.id
    messages.push(
      message,
      id ? { role: 'tool', tool_call_id: id, content: `{"call": ${call}}` } : { role: 'user', content: `Next ${call}.` },
    )
  }
  const turns = (await session.close())[0]!.turns
  expect(turns.map(({ parent }) => parent)).toEqual([null, 0, 1, 2, 3, 4])
})

describe('what makes every call a branch is said once', () => {
  const ask = async (warnings: GatewayWarning[], system: (call: number) => string, calls: number) => {
    await using started = await startGateway({ say: () => 'Fine.', onWarning: (warning) => warnings.push(warning) })
    for (const rollout of ['first', 'second']) {
      const session = started.gateway.open(sessionRequest({ rollout }))
      const client = openaiClient(session.endpoint('agent')).chat.completions
      const history: { role: 'user' | 'assistant'; content: string }[] = [question]
      for (let call = 0; call < calls; call++) {
        const messages = [{ role: 'system' as const, content: system(call) }, ...history]
        const { content } = (await client.create({ model: 'any', messages })).choices[0]!.message
        history.push({ role: 'assistant', content: content! }, { role: 'user', content: `More ${call}.` })
      }
      await session.close()
    }
    return started.gateway.counts()
  }

  test('a timestamp in the system prompt', async () => {
    const warnings: GatewayWarning[] = []
    const counts = await ask(warnings, (call) => `It is 12:00:0${call}. Be brief.`, 5)
    expect(counts.branches).toEqual({ root: 2, 'no-match': 8 })
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatchObject({ code: 'BRANCH_EXPLOSION', details: { rollout: 'first', agent: 'agent', index: 0, role: 'system' } })
    expect(warnings[0]!.message).toContain('"It is 12:00:03. Be brief." was "It is 12:00:02. Be brief."')
  })

  test('a system prompt that stays the same, and one edit of it, raise none', async () => {
    const warnings: GatewayWarning[] = []
    await ask(warnings, (call) => (call < 3 ? 'Be brief.' : 'Be long.'), 5)
    expect(warnings).toEqual([])
  })

  test('a template that rewrites earlier turns, before the run', async () => {
    const template = `{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content }}{% if loop.last %}!{% endif %}{{ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`
    const warningsOf = async (history: 'template' | 'as-sampled') => {
      const warnings: GatewayWarning[] = []
      await using _ = await startGateway({ say: [], template, history, onWarning: (warning) => warnings.push(warning) })
      return warnings
    }
    expect(await warningsOf('template')).toMatchObject([
      { code: 'TEMPLATE_REWRITES', message: expect.stringContaining('at each new user message') },
    ])
    expect(await warningsOf('as-sampled')).toEqual([])
  })
})

test.each(['required', { type: 'function', function: { name: 'lookup' } }] as const)(
  'a forced call (%j) is opened by the prompt with mask 0, and what follows it is exact',
  async (choice) => {
    const opening = typeof choice === 'string' ? '<tool_call>\n{"name":' : '<tool_call>\n{"name": "lookup", "arguments":'
    const rest = lookupCall('gold').slice(opening.length)
    await using started = await startGateway({ say: [rest, '79.'] })
    const { chat, gateway } = started
    const session = gateway.open(sessionRequest())
    const client = openaiClient(session.endpoint('agent')).chat.completions
    const { message } = (await client.create({ model: 'any', messages: [question], tools: [lookupTool], tool_choice: choice })).choices[0]!
    expect(message.tool_calls).toMatchObject([{ function: { name: 'lookup', arguments: '{"name": "gold"}' } }])
    const result = { role: 'tool' as const, tool_call_id: message.tool_calls![0]!.id, content: '79' }
    await client.create({ model: 'any', messages: [question, message, result], tools: [lookupTool] })
    const record = await session.close()
    const [first, second] = record[0]!.turns
    expect(chat.decode(first!.promptTokenIds).endsWith(`<|im_start|>assistant\n${opening}`)).toBe(true)
    expect(second).toMatchObject({ parent: 0, branchReasons: [] })
    expect(chat.decode(second!.promptTokenIds)).toContain(
      `<|im_start|>assistant\n${lookupCall('gold')}<|im_end|>\n<|im_start|>tool\n79<|im_end|>`,
    )
    const [sample] = toTrainingSamples(episodeOf(record)).samples
    expect(chat.decode(sample!.tokenIds.filter((_, index) => sample!.lossMask[index] === 1))).toBe(`${rest}<|im_end|>79.<|im_end|>`)
  },
)
