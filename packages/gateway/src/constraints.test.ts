import Anthropic from '@anthropic-ai/sdk'
import { type Constraint, type PolicyEndpoint, toTrainingSamples } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { lookupCall, lookupTool, openaiClient, post, sessionRequest, startGateway } from './testing/start-gateway.ts'

const user = { role: 'user', content: 'Gold?' } as const
const schema = { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'], additionalProperties: false }
const jsonText = '{"number": 79}'
const every: ReadonlySet<Constraint['kind']> = new Set(['json-object', 'json-schema', 'regex', 'choice', 'grammar'] as const)

/** Each client asks for the same form. Resolves to the text of the answer. */
const clients: Readonly<Record<string, (endpoint: PolicyEndpoint) => Promise<string | null>>> = {
  async 'chat completions'(endpoint) {
    const answer = await openaiClient(endpoint).chat.completions.create({
      model: 'any',
      messages: [user],
      response_format: { type: 'json_schema', json_schema: { name: 'element', schema, strict: true } },
    })
    return answer.choices[0]!.message.content
  },
  async responses(endpoint) {
    const format = { type: 'json_schema', name: 'element', schema } as const
    return (await openaiClient(endpoint).responses.create({ model: 'any', input: 'Gold?', text: { format } })).output_text
  },
  async messages({ baseUrl, apiKey }) {
    const client = new Anthropic({ baseURL: baseUrl, apiKey, maxRetries: 0 })
    const format = { type: 'json_schema', schema } as const
    const answer = await client.messages.create({ model: 'any', max_tokens: 99, messages: [user], output_config: { format } })
    return answer.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  },
}

for (const [name, ask] of Object.entries(clients)) {
  test(`an engine is told the form that ${name} asks for, and the turn is refused by training`, async () => {
    await using started = await startGateway({ say: () => jsonText, constraints: every })
    const session = started.gateway.open(sessionRequest())
    expect(await ask(session.endpoint('agent'))).toBe(jsonText)
    const constraint = { kind: 'json-schema', schema: JSON.stringify(schema) }
    expect(started.engine.requests).toMatchObject([{ constraint }])
    const trajectories = await session.close()
    expect(trajectories[0]!.turns).toMatchObject([{ constraint, capture: { tokens: 'token-in', logprobs: 'processed' } }])
    expect(trajectories[0]!.turns[0]).not.toHaveProperty('unusedFields')
    expect(started.gateway.counts().ignored).toEqual({})
    const episode = { rollout: 'rollout-1', group: 'g', attempt: 0, taskId: 'task-1', sample: 0, trajectories, reward: 1 }
    expect(() => toTrainingSamples(episode as never)).toThrow(/"processed" logprobs.*response_format/)
  })

  test(`an engine that cannot is not asked, and ${name} hears why`, async () => {
    await using started = await startGateway({ say: () => jsonText, constraints: new Set(['regex'] as const) })
    const session = started.gateway.open(sessionRequest())
    const error = await ask(session.endpoint('agent')).then(
      () => null,
      (cause: { status: number; message: string }) => cause,
    )
    expect(error).toMatchObject({ status: 400, message: expect.stringMatching(/json-schema.*cannot enforce/) })
    expect(started.engine.requests).toEqual([])
    expect((await session.close())[0]!.turns).toEqual([])
    // The error concerns only the request and does not fail the session.
    expect(session.failure()).toBeNull()
  })
}

test('engines enforce nothing unless they say so', async () => {
  await using started = await startGateway({ say: () => jsonText })
  const endpoint = started.gateway.open(sessionRequest()).endpoint('agent')
  const { status, json } = await post(endpoint, { messages: [user], response_format: { type: 'json_object' }, stream: true })
  expect(status).toBe(400)
  expect(json().error).toMatchObject({ type: 'invalid_request_error', code: 'constraint_unsupported', param: 'response_format' })
  expect((await post(endpoint, { messages: [user], response_format: { type: 'text' } })).status).toBe(200)
})

test('a form and tools that may be called exclude each other; a forced call has a form of its own', async () => {
  await using started = await startGateway({
    say: [jsonText, ' {"name": "gold"}}\n</tool_call>', lookupCall('gold')],
    constraints: every,
  })
  const session = started.gateway.open(sessionRequest())
  const endpoint = session.endpoint('agent')
  const request = { messages: [user], tools: [lookupTool], response_format: { type: 'json_object' } }
  const refused = await post(endpoint, request)
  expect(refused.status).toBe(400)
  expect(refused.json().error).toMatchObject({ code: 'constraint_unsupported', message: expect.stringContaining('no tool can be called') })
  expect((await post(endpoint, { ...request, tool_choice: 'none' })).json().choices[0].message.content).toBe(jsonText)
  const forced = await post(endpoint, { ...request, tool_choice: { type: 'function', function: { name: 'lookup' } } })
  expect(forced.json().choices[0].finish_reason).toBe('tool_calls')
  await post(endpoint, { messages: [user], tools: [lookupTool] })
  expect(started.engine.requests.map(({ constraint }) => constraint)).toEqual([{ kind: 'json-object' }, undefined, undefined])
  const turns = (await session.close())[0]!.turns
  expect(turns.map(({ capture }) => capture.logprobs)).toEqual(['processed', 'temperature', 'temperature'])
})
