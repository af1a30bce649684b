import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type ProbeModelServerOptions, probeModelServer } from './probe-model-server.ts'
import { createTestServer, type Route, sendJson } from './testing/http-server.ts'

const never = new AbortController().signal

/** Serves `list` at `/v1/models` and nothing else, as real servers do. */
const serving =
  (list: unknown): Route =>
  ({ path }, response) =>
    path === '/v1/models' ? sendJson(response, 200, list) : sendJson(response, 404, { detail: 'Not Found' })

async function probe(route: Route, { path = '/v1', ...options }: Partial<ProbeModelServerOptions> & { readonly path?: string } = {}) {
  const server = await createTestServer(route)
  try {
    const facts = await probeModelServer(server.url + path, { model: 'Qwen/Qwen3-8B', signal: never, ...options })
    return { ...facts, baseUrl: facts.baseUrl.replace(server.url, ''), seen: server.seen }
  } finally {
    await server.close()
  }
}

// Answers as the sources have them: vllm/entrypoints/openai/engine/protocol.py, sglang/srt/entrypoints/openai/protocol.py (served with
// `root` and `max_model_len`), llama.cpp tools/server/server-context.cpp, and the API references of OpenAI, Anthropic and Google.
const vllm = {
  object: 'list',
  data: [
    {
      id: 'Qwen/Qwen3-8B',
      object: 'model',
      created: 1790000000,
      owned_by: 'vllm',
      root: '/models/qwen3-8b',
      parent: null,
      max_model_len: 40960,
      permission: [{ id: 'modelperm-1', object: 'model_permission', created: 1790000000, allow_sampling: true, organization: '*' }],
    },
    {
      id: 'sql-adapter',
      object: 'model',
      created: 1790000000,
      owned_by: 'vllm',
      root: '/loras/sql',
      parent: 'Qwen/Qwen3-8B',
      max_model_len: null,
    },
  ],
}
const sglang = {
  object: 'list',
  data: [
    {
      id: 'Qwen/Qwen3-8B',
      object: 'model',
      created: 1790000000,
      owned_by: 'sglang',
      root: 'Qwen/Qwen3-8B',
      parent: null,
      max_model_len: 32768,
    },
  ],
}
const meta = { vocab_type: 2, n_vocab: 151936, n_ctx: 8192, n_ctx_train: 40960, n_embd: 4096, n_params: 8190735360, size: 5027783488 }
const llamaCpp = {
  models: [{ name: 'qwen3-8b.gguf', model: 'qwen3-8b.gguf', type: 'model', capabilities: ['completion'] }],
  object: 'list',
  data: [{ id: 'qwen3-8b.gguf', aliases: ['Qwen/Qwen3-8B'], tags: [], object: 'model', created: 1790000000, owned_by: 'llamacpp', meta }],
}
const openai = {
  object: 'list',
  data: [
    { id: 'gpt-5-mini', object: 'model', created: 1754425777, owned_by: 'system' },
    { id: 'gpt-5-mini-2025-08-07', object: 'model', created: 1754425867, owned_by: 'system' },
  ],
}
const anthropic = {
  data: [{ type: 'model', id: 'claude-sonnet-4-5-20250929', display_name: 'Claude Sonnet 4.5', created_at: '2025-09-29T00:00:00Z' }],
  has_more: false,
  first_id: 'claude-sonnet-4-5-20250929',
  last_id: 'claude-sonnet-4-5-20250929',
}
const google = {
  object: 'list',
  data: [{ id: 'models/gemini-2.5-pro', object: 'model', owned_by: 'google', display_name: 'Gemini 2.5 Pro' }],
}

test.each([
  [
    'vLLM',
    vllm,
    'Qwen/Qwen3-8B',
    'vllm',
    true,
    [
      ['Qwen/Qwen3-8B', 40960],
      ['sql-adapter', null],
    ],
  ],
  ['SGLang', sglang, 'qwen', 'sglang', false, [['Qwen/Qwen3-8B', 32768]]],
  [
    'llama.cpp',
    llamaCpp,
    'Qwen/Qwen3-8B',
    'llama.cpp',
    true,
    [
      ['qwen3-8b.gguf', 8192],
      ['Qwen/Qwen3-8B', 8192],
    ],
  ],
  [
    'OpenAI',
    openai,
    'gpt-5-mini',
    null,
    true,
    [
      ['gpt-5-mini', null],
      ['gpt-5-mini-2025-08-07', null],
    ],
  ],
  ['Anthropic', anthropic, 'claude-sonnet-4-5', null, false, [['claude-sonnet-4-5-20250929', null]]],
  ['Google', google, 'gemini-2.5-pro', null, true, [['models/gemini-2.5-pro', null]]],
] as const)('%s says what serves, and which models', async (_name, list, model, server, hasModel, models) => {
  const facts = await probe(serving(list), { model })
  expect(facts).toMatchObject({ baseUrl: '/v1', server, hasModel })
  expect(facts.models?.map(({ name, contextLength }) => [name, contextLength])).toEqual(models)
})

test('an address without /v1 is found with it, and one that has it is asked once', async () => {
  for (const path of ['', '/'])
    expect(await probe(serving(vllm), { path })).toMatchObject({ baseUrl: '/v1', server: 'vllm', hasModel: true })
  const { seen } = await probe(serving(vllm), { path: '/v1/' })
  expect(seen.map(({ path }) => path)).toEqual(['/v1/models'])
  const below = await probe(({ path }, response) => sendJson(response, path === '/api/v1/models' ? 200 : 404, vllm), { path: '/api' })
  expect(below.baseUrl).toBe('/api/v1')
  const locked: Route = ({ path }, response) => sendJson(response, path === '/v1/models' ? 401 : 404, { error: { message: 'No key.' } })
  await expect(probe(locked, { path: '' })).rejects.toThrow('/v1 answered 401: No key.; it wants a key')
})

test.each<[string, Route]>([
  ['no list', (_, response) => sendJson(response, 404, { error: { message: 'Not Found' } })],
  ['a list that is another thing', (_, response) => sendJson(response, 200, { models: 'many' })],
  ['a list that is refused for load', (_, response) => sendJson(response, 429, { error: { message: 'Slow down.' } })],
  ['a list that fails', (_, response) => sendJson(response, 500, { error: { message: 'oops' } })],
])('a server with %s does not name itself, and may serve all the same', async (_name, route) => {
  expect(await probe(route)).toMatchObject({ baseUrl: '/v1', server: null, models: null, hasModel: null })
})

test('entries that are none are left out', async () => {
  const facts = await probe(serving({ data: [null, 7, {}, { id: 3 }, { id: 'a', max_model_len: -1, owned_by: 9 }] }))
  expect(facts).toMatchObject({ server: null, models: [{ name: 'a', contextLength: null }], hasModel: false })
})

test('the key and headers are sent', async () => {
  const { seen } = await probe(serving(openai), { apiKey: 'sk-1', headers: { 'x-api-key': 'sk-2' } })
  expect(seen[0]!.headers).toMatchObject({ authorization: 'Bearer sk-1', 'x-api-key': 'sk-2' })
})

test.each<[string, Route, Partial<ProbeModelServerOptions>, RegExp]>([
  [
    'a key that is wanted',
    (_, response) => sendJson(response, 401, { error: { message: 'No key.' } }),
    {},
    /401: No key\..*wants a key; give it one/,
  ],
  [
    'a key that is refused',
    (_, response) => sendJson(response, 403, { error: { message: 'No.' } }),
    { apiKey: 'sk-1' },
    /403: No\..*check its key/,
  ],
  ['a redirection', (_, response) => void response.writeHead(308, { location: 'https://x.example' }).end(), {}, /308, a redirection/],
  [
    'a web page',
    (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>\n<h1>Welcome</h1>'),
    {},
    /answered no JSON: "<html> <h1>Welcome<\/h1>"; check the address/,
  ],
])('%s is a typed failure that says what to do', async (_name, route, options, message) => {
  await expect(probe(route, options)).rejects.toMatchObject({ code: 'FROZEN_MODEL_FAILED', message: expect.stringMatching(message) })
})

test('nobody there, silence, and an address that is none are typed failures; an abort ends the wait with its reason', async () => {
  const server = await createTestServer(() => sleep(600_000, undefined, { ref: false }))
  const options = { model: 'a', signal: never }
  await expect(probeModelServer(`${server.url}/v1`, { ...options, timeoutMs: 50 })).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
  const reason = new Error('Ctrl-C')
  const leave = new AbortController()
  const waiting = probeModelServer(`${server.url}/v1`, { ...options, signal: leave.signal, timeoutMs: 600_000 })
  await expect.poll(() => server.seen.length).toBe(2)
  leave.abort(reason)
  await expect(waiting).rejects.toBe(reason)
  await server.close()
  await expect(probeModelServer(`${server.url}/v1`, options)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
  for (const address of ['gpu:8000/v1', 'ftp://gpu/v1', ''])
    await expect(probeModelServer(address, options)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
})
