import { expect, test } from 'vitest'
import { lookupCall, lookupTool, sessionRequest, startGateway } from '../testing/start-gateway.ts'

const { name, description, parameters } = lookupTool.function

test('a conversation goes on as sampled in whatever dialect its next call comes', async () => {
  await using started = await startGateway({
    say: [`Let me look.\n${lookupCall('gold')}`, lookupCall('iron'), 'Gold is 79 and iron is 26.'],
  })
  const session = started.gateway.open(sessionRequest())
  const ask = async <Answer>(path: string, body: object) => {
    const response = await fetch(session.endpoint('agent').baseUrl + path, {
      method: 'POST',
      body: JSON.stringify({ model: 'any', ...body }),
    })
    expect(response.status).toBe(200)
    return (await response.json()) as Answer
  }

  const user = { role: 'user', content: 'Gold and iron?' }
  const chat = await ask<{ choices: { message: { content: string; tool_calls: { id: string }[] } }[] }>('/chat/completions', {
    messages: [{ role: 'system', content: 'Use the tools.' }, user],
    tools: [lookupTool],
  })
  const { content, tool_calls: calls } = chat.choices[0]!.message
  const gold = calls[0]!.id

  const messages = await ask<{ content: { type: string; id: string }[] }>('/messages', {
    max_tokens: 512,
    system: 'Use the tools.',
    tools: [{ name, description, input_schema: parameters }],
    messages: [
      user,
      {
        role: 'assistant',
        content: [
          { type: 'text', text: content },
          { type: 'tool_use', id: gold, name, input: { name: 'gold' } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: gold, content: '79' }] },
    ],
  })
  const iron = messages.content.find(({ type }) => type === 'tool_use')!.id

  await ask('/responses', {
    instructions: 'Use the tools.',
    tools: [{ type: 'function', name, description, parameters, strict: null }],
    input: [
      user,
      { role: 'assistant', content },
      { type: 'function_call', call_id: gold, name, arguments: '{"name":"gold"}' },
      { type: 'function_call_output', call_id: gold, output: '79' },
      { type: 'function_call', call_id: iron, name, arguments: '{"name":"iron"}' },
      { type: 'function_call_output', call_id: iron, output: '26' },
    ],
  })
  const { turns } = (await session.close())[0]!
  expect(turns.map(({ parent, branchReasons }) => [parent, branchReasons])).toEqual([
    [null, ['root']],
    [0, []],
    [1, []],
  ])
})
