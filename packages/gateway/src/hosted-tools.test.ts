import type { Trajectory } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import type { GatewayWarning } from './options.ts'
import { readNamedEvents } from './testing/read-named-events.ts'
import { startChatGateway } from './testing/start-chat-gateway.ts'
import { lookupCall, sessionRequest, startGateway } from './testing/start-gateway.ts'

const schema = { type: 'object', properties: { name: { type: 'string' } } }
const question = { role: 'user', content: 'Gold?' }

/** A request of each dialect with a tool of its own, with hosted ones and without. */
const dialects: Readonly<Record<string, { path: string; body: object; own: object; hosted: readonly object[]; history: object }>> = {
  'chat-completions': {
    path: '/chat/completions',
    body: { messages: [question] },
    own: { type: 'function', function: { name: 'lookup', parameters: schema } },
    hosted: [{ type: 'web_search' }, { type: 'mcp', server_label: 'x' }],
    history: {},
  },
  responses: {
    path: '/responses',
    body: { input: [question] },
    own: { type: 'function', name: 'lookup', parameters: schema },
    hosted: [{ type: 'web_search', external_web_access: false }, { type: 'image_generation' }],
    history: { input: [{ type: 'web_search_call', id: 'ws_1', status: 'completed' }, { type: 'mcp_call', name: 'x' }, question] },
  },
  messages: {
    path: '/messages',
    body: { messages: [question], max_tokens: 64 },
    own: { name: 'lookup', input_schema: schema },
    hosted: [
      { type: 'web_search_20250305', name: 'web_search' },
      { type: 'bash_20250124', name: 'bash' },
    ],
    history: {
      messages: [
        question,
        {
          role: 'assistant',
          content: [
            { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
            { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
            { type: 'text', text: 'I looked.' },
          ],
        },
        question,
      ],
    },
  },
}

async function ask(baseUrl: string, path: string, body: object) {
  const response = await fetch(baseUrl + path, { method: 'POST', body: JSON.stringify(body) })
  return { status: response.status, text: await response.text() }
}

describe.each(Object.entries(dialects))('%s', (_, { path, body, own, hosted, history }) => {
  test('hosted tools and what they left in a history are left out of the prompt, counted, and said once', async () => {
    const warnings: GatewayWarning[] = []
    await using started = await startGateway({ say: ['79', '79', '79'], onWarning: (warning) => warnings.push(warning) })
    const session = started.gateway.open(sessionRequest())
    const { baseUrl } = session.endpoint('agent')
    for (const tools of [[own], [hosted[0]!, own, hosted[1]!]]) expect((await ask(baseUrl, path, { ...body, tools })).status).toBe(200)
    expect((await ask(baseUrl, path, { ...body, ...history, tools: [...hosted, own] })).status).toBe(200)
    const [plain, other] = started.engine.requests.map(({ promptTokenIds }) => started.chat.decode(promptTokenIds))
    expect(other).toBe(plain)
    expect(plain).toContain('lookup')
    const { ignored = {} } = started.gateway.counts()
    const types = hosted.map((tool) => (tool as { type: string }).type)
    for (const type of types) expect(ignored[`tool ${type}`]).toBe(2)
    expect(Object.keys(ignored).filter((name) => name.startsWith('tool '))).toHaveLength(Object.keys(history).length > 0 ? 4 : 2)
    expect(warnings).toMatchObject([{ code: 'HOSTED_TOOLS', message: expect.stringContaining(types.join(', ')) }])
    expect(session.failure()).toBeNull()
    await session.close()
  })

  test('a choice of a hosted tool leaves the policy its own; hosted tools alone are no tools', async () => {
    await using started = await startGateway({ say: ['79', '79'] })
    const session = started.gateway.open(sessionRequest())
    const { baseUrl } = session.endpoint('agent')
    const choice = path === '/messages' ? { type: 'tool', name: 'bash' } : { type: 'image_generation' }
    const required = path === '/messages' ? { type: 'any' } : 'required'
    if (path !== '/chat/completions') expect((await ask(baseUrl, path, { ...body, tools: hosted, tool_choice: choice })).status).toBe(200)
    expect((await ask(baseUrl, path, { ...body, tools: hosted, tool_choice: required })).status).toBe(200)
    await session.close()
  })

  test('a run may refuse them, by name', async () => {
    await using started = await startGateway({ say: [], hostedTools: 'refuse' })
    const session = started.gateway.open(sessionRequest())
    const { status, text } = await ask(session.endpoint('agent').baseUrl, path, { ...body, tools: [own, ...hosted] })
    expect(status).toBe(400)
    expect(text).toContain('hostedTools')
    await session.close()
  })
})

describe('tools of a namespace', () => {
  const namespace = {
    type: 'namespace',
    name: 'crm',
    description: 'Customers.',
    tools: [
      { type: 'function', name: 'lookup', description: 'Looks up.', parameters: { type: 'object', properties: { a: { const: 1.0 } } } },
      { type: 'custom', name: 'note' },
    ],
  }
  const plain = { type: 'function', name: 'lookup', parameters: schema }
  const tools = [plain, namespace]
  const call = lookupCall('gold').replace('"lookup"', '"crm__lookup"')

  test.each([false, true])(
    'are functions in the prompt, answered under their own names, and go on as sampled (stream %s)',
    async (stream) => {
      await using started = await startGateway({ say: [call, 'Done.'] })
      const session = started.gateway.open(sessionRequest())
      const endpoint = session.endpoint('agent')
      const input = [question]
      let output: Record<string, unknown>[]
      if (stream) {
        const events = await readNamedEvents(endpoint, '/responses', { input, tools })
        output = (events.at(-1)!['response'] as { output: Record<string, unknown>[] }).output
        const done = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)
        expect(done).toEqual(output)
      } else
        output = (JSON.parse((await ask(endpoint.baseUrl, '/responses', { input, tools })).text) as { output: Record<string, unknown>[] })
          .output
      expect(output).toMatchObject([{ type: 'function_call', namespace: 'crm', name: 'lookup', arguments: '{"name": "gold"}' }])
      const result = { type: 'function_call_output', call_id: output[0]!['call_id'], output: '79' }
      await ask(endpoint.baseUrl, '/responses', { input: [...input, ...output, result], tools })
      const [{ turns }] = (await session.close()) as [Trajectory]
      expect(turns.map(({ parent }) => parent)).toEqual([null, 0])
      expect(turns[0]!.toolCalls).toMatchObject([{ name: 'crm__lookup' }])
      const prompt = started.chat.decode(turns[0]!.promptTokenIds)
      expect(prompt).toContain('crm__lookup')
      expect(prompt).toContain('crm__note')
      expect(started.gateway.counts()).toMatchObject({ tolerated: {}, ignored: {} })
    },
  )

  test('can be chosen by their names, alone and among those that are allowed', async () => {
    await using started = await startGateway({ say: [call, call, lookupCall('gold')] })
    const session = started.gateway.open(sessionRequest())
    const { baseUrl } = session.endpoint('agent')
    const chosen = { type: 'function', namespace: 'crm', name: 'lookup' }
    const outputOf = async (choice: object): Promise<unknown> =>
      JSON.parse((await ask(baseUrl, '/responses', { input: 'Gold?', tools, tool_choice: choice })).text).output
    expect(await outputOf({ type: 'allowed_tools', mode: 'auto', tools: [chosen] })).toMatchObject([{ namespace: 'crm' }])
    const others = { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'lookup' }] }
    expect(JSON.stringify(await outputOf(others))).not.toContain('crm')
    const missing = await ask(baseUrl, '/responses', { input: 'Gold?', tools, tool_choice: { ...chosen, name: 'nothing' } })
    expect(missing.text).toContain('crm__nothing')
    await session.close()
  })
})

test('a chat engine and its server see the tools of namespaces as functions, and no hosted ones', async () => {
  await using started = await startChatGateway(() => '79')
  const session = started.gateway.open(sessionRequest())
  const tools = [
    { type: 'namespace', name: 'crm', tools: [{ type: 'function', name: 'lookup', parameters: schema }] },
    { type: 'web_search' },
  ]
  await ask(session.endpoint('agent').baseUrl, '/responses', { input: 'Gold?', tools })
  const sent = started.server.calls[0]!.body['tools'] as { function: { name: string } }[]
  expect(sent.map((tool) => tool.function.name)).toEqual(['crm__lookup'])
  expect(started.gateway.counts().ignored).toMatchObject({ 'tool web_search': 1 })
  await session.close()
})
