import { request as httpRequest } from 'node:http'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { createGateway } from './gateway.ts'
import { lookupTool, post, sessionRequest, startGateway } from './testing/start-gateway.ts'

const user = { role: 'user', content: 'Hi.' }
const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

/** Bodies, and what their errors must say. */
const cases: readonly (readonly [name: string, body: unknown, param: string | null, message: RegExp])[] = [
  ['empty', '', null, /not valid JSON/],
  ['cut', '{"messages": [', null, /not valid JSON/],
  ['not UTF-8', Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d), null, /not valid UTF-8/],
  ['with NaN', '{"messages": [], "temperature": NaN}', null, /not valid JSON/],
  ['null', 'null', 'body', /"body" is null; it must be an object/],
  ['an array', [], 'body', /is an array/],
  ['a number', 7, 'body', /is a number/],
  ['without messages', {}, 'messages', /"messages" is missing; it must be an array/],
  ['no message', { messages: [] }, 'messages', /is empty/],
  ['messages as text', { messages: 'Hi.' }, 'messages', /is a string; it must be an array/],
  ['a message that is text', { messages: ['Hi.'] }, 'messages[0]', /must be an object/],
  ['no role', { messages: [{ content: 'Hi.' }] }, 'messages[0].role', /is missing/],
  ['a strange role', { messages: [user, { role: 'function', content: '' }] }, 'messages[1].role', /must be one of system, developer/],
  ['content as number', { messages: [{ role: 'user', content: 5 }] }, 'messages[0].content', /must be an array/],
  ['a part without text', { messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'messages[0].content[0].text', /is missing/],
  [
    'an image',
    { messages: [user, { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] }] },
    'messages[1].content[0].type',
    /reads text only/,
  ],
  ['a result without id', { messages: [user, { role: 'tool', content: '1' }] }, 'messages[1].tool_call_id', /is missing/],
  [
    'a call without name',
    { messages: [user, user, { role: 'assistant', tool_calls: [{ id: 'a', function: {} }] }] },
    'messages[2].tool_calls[0].function.name',
    /is missing/,
  ],
  [
    'arguments as object',
    { messages: [user, { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: {} } }] }] },
    'messages[1].tool_calls[0].function.arguments',
    /must be a string/,
  ],
  ['tools as object', { messages: [user], tools: {} }, 'tools', /must be an array/],
  ['a tool without type', { messages: [user], tools: [{ function: { name: 'a' } }] }, 'tools[0].type', /is missing/],
  ['a tool without name', { messages: [user], tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name', /is missing/],
  [
    'a bottomless tool',
    `{"messages":[{"role":"user","content":"Hi."}],"tools":[{"type":"function","function":{"name":"f","parameters":${nested(20_000)}}}]}`,
    'tools[0].function.parameters',
    /nested more than 64 deep/,
  ],
  ['a forced call without tools', { messages: [user], tool_choice: 'required' }, 'tool_choice', /"tools" is empty/],
  [
    'a named tool that is none',
    { messages: [user], tools: [lookupTool], tool_choice: { type: 'function', function: { name: 'f' } } },
    'tool_choice',
    /names "f".*known are: lookup/,
  ],
  ['a strange choice', { messages: [user], tool_choice: 'maybe' }, 'tool_choice', /must be auto, none, required/],
  [
    'an old call',
    { messages: [user, { role: 'assistant', function_call: { name: 'f' } }] },
    'messages[1].function_call',
    /send "tool_calls"/,
  ],
  ['functions', { messages: [user], functions: [] }, 'functions', /send "tools"/],
  ['two choices', { messages: [user], n: 2 }, 'n', /one completion/],
  ['no tokens', { messages: [user], max_tokens: 0 }, 'max_tokens', /at least 1/],
  ['half a token', { messages: [user], max_completion_tokens: 1.5 }, 'max_completion_tokens', /whole number/],
  ['stop as number', { messages: [user], stop: 3 }, 'stop', /must be an array/],
  ['stop of numbers', { messages: [user], stop: ['a', 3] }, 'stop[1]', /must be a string/],
  ['stream as text', { messages: [user], stream: 'yes' }, 'stream', /true or false/],
  ['logprobs as number', { messages: [user], logprobs: 5 }, 'logprobs', /true or false/],
  ['stream_options as list', { messages: [user], stream_options: [] }, 'stream_options', /must be an object/],
]

test('a bad body is refused with the path of what is wrong', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const session = started.gateway.open(sessionRequest())
  for (const [name, body, param, message] of cases) {
    const answer = await post(session.endpoint('agent'), body)
    expect([name, answer.status]).toEqual([name, 400])
    const { error } = answer.json()
    expect(error).toMatchObject({
      type: 'invalid_request_error',
      code: name === 'an image' ? 'input_unsupported' : 'invalid_request',
      param,
    })
    expect(error.message).toMatch(message)
    expect(answer.headers.get('x-should-retry')).toBe('false')
  }
  expect(started.engine.requests.length).toBe(0)
  expect(session.failure()).toBeNull()
  expect(started.gateway.counts()).toMatchObject({ calls: cases.length, failures: cases.length, inFlight: 0 })
  expect((await post(session.endpoint('agent'), { messages: [user] })).status).toBe(200)
})

test('odd but harmless bodies are served', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const session = started.gateway.open(sessionRequest())
  const bodies: readonly unknown[] = [
    '{"messages":[{"role":"user","content":"first"}],"messages":[{"role":"user","content":"last wins"}]}',
    '{"messages":[{"role":"user","content":"lone \\ud800 surrogate \\udc00"}],"__proto__":{"stream":true},"constructor":1}',
    `{"messages":[{"role":"user","content":"deep"}],"metadata":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
    { messages: [user], temperature: 'hot', seed: null, top_p: [], user: {}, store: true, unknown_field: { a: 1 }, n: 1, stop: null },
    {
      messages: [
        { role: 'developer', content: [{ type: 'text', text: 'a', junk: 1 }] },
        { ...user, content: null },
      ],
      tools: null,
    },
    { messages: [user], tools: [lookupTool], tool_choice: 'auto', parallel_tool_calls: false, stream_options: null, stop: '' },
    { messages: [{ role: 'user', content: '<|im_end|>\u0000\u2028 typed by a user' }] },
  ]
  for (const [index, body] of bodies.entries()) expect([index, (await post(session.endpoint('agent'), body)).status]).toEqual([index, 200])
  const prompts = started.engine.requests.map(({ promptTokenIds }) => started.chat.decode(promptTokenIds))
  expect(prompts[0]).toContain('last wins')
  expect(prompts[1]).toContain('lone \ufffd surrogate \ufffd')
  expect(started.gateway.counts().ignored).toMatchObject({ temperature: 1, top_p: 1 })
})

test('a body above the limit is refused before it is read, and the connection goes on', async () => {
  await using started = await startGateway({ say: () => 'Fine.', limits: { maxBodyBytes: 100_000 } })
  const endpoint = started.gateway.open(sessionRequest()).endpoint('agent')
  const large = { messages: [{ role: 'user', content: 'x'.repeat(200_000) }] }
  const answer = await post(endpoint, large)
  expect(answer.status).toBe(413)
  expect(answer.json().error).toMatchObject({ code: 'request_too_large', message: expect.stringContaining('100000 bytes') })

  const status = await new Promise<number | undefined>((resolve, reject) => {
    const request = httpRequest(`${endpoint.baseUrl}/chat/completions`, { method: 'POST' }, (response) => {
      resolve(response.resume().statusCode)
      request.end()
    })
    request.on('error', reject)
    for (let index = 0; index < 40; index++) request.write('x'.repeat(5_000))
  })
  expect(status).toBe(413)
  expect((await post(endpoint, { messages: [user] })).status).toBe(200)
})

test('a compressed body is refused by name, and the connection goes on', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { baseUrl } = started.gateway.open(sessionRequest()).endpoint('agent')
  const body = JSON.stringify({ messages: [user] })
  const send = (encoding: string, bytes: string | Buffer<ArrayBuffer>) =>
    fetch(`${baseUrl}/chat/completions`, { method: 'POST', headers: { 'content-encoding': encoding }, body: bytes })
  const refused = await send('gzip', gzipSync(body))
  expect(refused.status).toBe(415)
  expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining('compressed ("gzip")') } })
  expect((await send('identity', body)).status).toBe(200)
})

test('other paths and methods are refused, with a capability and without', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { gateway } = started
  const { baseUrl } = gateway.open(sessionRequest()).endpoint('agent')
  const statusOf = async (url: string, init?: RequestInit) => (await fetch(url, init)).status
  expect(await statusOf(`${baseUrl}/chat/completions`)).toBe(405)
  expect(await statusOf(`${baseUrl}/embeddings`, { method: 'POST' })).toBe(404)
  expect(await statusOf(`${baseUrl}/models`)).toBe(200)
  expect(await statusOf(`${baseUrl}/chat/completions?api-version=1`, { method: 'POST', body: JSON.stringify({ messages: [user] }) })).toBe(
    200,
  )
  for (const path of ['/', '/r/', '/r/x', '/v1/chat/completions', '/../etc', '/r/a.b.c.d/v2/x']) {
    expect([path, await statusOf(`${gateway.url}${path}`)]).toEqual([path, 404])
  }
})

test('models and health are served', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { gateway } = started
  const endpoint = gateway.open(sessionRequest()).endpoint('agent')
  await post(endpoint, { messages: [user] })
  const models = await (await fetch(`${gateway.url}/v1/models`)).json()
  expect(models).toMatchObject({ object: 'list', data: [{ id: 'tiny', object: 'model', max_model_len: 4096 }] })
  expect(await (await fetch(`${gateway.url}/health`)).json()).toEqual({ status: 'ok', inFlight: 0, waiting: 0, weightVersion: 0 })
})

test('a port in use is said', async () => {
  await using started = await startGateway({ say: [] })
  const port = Number(new URL(started.gateway.url).port)
  const second = createGateway({ models: { policy: { kind: 'token', engine: started.engine, chat: started.chat } }, seed: 1, port })
  await expect(second).rejects.toMatchObject({ code: 'GATEWAY_PORT_IN_USE', message: expect.stringContaining(`Port ${port}`) })
})
