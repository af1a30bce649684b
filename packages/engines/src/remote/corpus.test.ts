import type { ChatEngine, ReadAnswer, TokenEngine } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { messageOf, toServerError } from './http/server-error.ts'
import { createSglangChatEngine, createSglangTokenEngine } from './sglang/sglang-engines.ts'
import { readAnswer as readSglang } from './sglang/sglang-reader.ts'
import { type Corpus, readCorpus, replay } from './testing/corpus.ts'
import { toyCall } from './testing/fleet-calls.ts'
import { createTestServer, type TestServer } from './testing/http-server.ts'
import { createVllmChatEngine, createVllmTokenEngine } from './vllm/vllm-engines.ts'
import { readAnswer as readVllm } from './vllm/vllm-reader.ts'

const model = { name: 'tiny', directory: '/nowhere', contextLength: 1024, vocabularySize: 269, stopTokenIds: [268] }
const sampling = toyCall().sampling
const signal = new AbortController().signal

/** A server that answers from a corpus. `chosen` names the recording for each path that a test calls. */
function serving(corpus: Corpus) {
  const recordings = readCorpus(corpus)
  const chosen = { name: '' }
  const running: { server: TestServer | null } = { server: null }
  beforeAll(async () => {
    running.server = await createTestServer(replay(recordings, () => chosen.name))
  })
  afterAll(() => running.server?.close())
  return { recordings, chosen, replicas: () => [(running.server as TestServer).url], seen: () => (running.server as TestServer).seen }
}

/** `promptTokens` is the number that the recorded answer counts. */
async function generate(engine: TokenEngine, promptTokens: number) {
  const pieces: number[] = []
  const promptTokenIds = Int32Array.from({ length: promptTokens }, (_, index) => index + 1)
  try {
    const result = await engine.generate(toyCall({ promptTokenIds, onTokens: (ids) => void pieces.push(ids.length) }), signal)
    return { ...result, tokenIds: Array.from(result.tokenIds), logprobs: Array.from(result.logprobs), pieces }
  } finally {
    await engine.close()
  }
}

async function converse(engine: ChatEngine, read: ReadAnswer, stream: boolean, content = 'sum') {
  const chunks: Buffer[] = []
  let type = ''
  const body = JSON.stringify({ model: 'policy', messages: [{ role: 'user', content }], stream })
  const handler = {
    onHead(head: { contentType: string }) {
      type = head.contentType
    },
    onData(chunk: Buffer) {
      chunks.push(chunk)
      return true
    },
  }
  try {
    const spliced = Buffer.from(`${body.slice(0, -1)},${engine.splice(sampling)}}\n`)
    const outcome = await engine.send({ body: spliced, stream, affinity: 'a' }, handler, signal)
    return { outcome, type, text: Buffer.concat(chunks).toString('utf8'), answer: () => read(Buffer.concat(chunks), stream) }
  } finally {
    await engine.close()
  }
}

const tokenIds = [73, 116, 32, 105, 115, 32, 52, 44, 32, 111, 114, 32, 53, 46, 268]

describe('answers recorded from vLLM 0.32', () => {
  const { recordings, chosen, replicas, seen } = serving('vllm-0.32')
  const use = (name: string) => {
    if (!recordings.has(name)) throw new Error(`There is no recording "${name}".`)
    chosen.name = name
  }

  test.each([
    ['generate', 'generate, streaming'],
    ['completions', 'completions, streaming'],
  ] as const)('are tokens, route %s', async (route, name) => {
    use(name)
    const result = await generate(await createVllmTokenEngine({ replicas: replicas(), model, route }), 22)
    expect(result).toMatchObject({ tokenIds, finishReason: { unified: 'stop', raw: 'stop' } })
    expect(result.weightVersions).toEqual([{ fromToken: 0, version: 0 }])
    expect(result.logprobs[0]).toBeCloseTo(JSON.parse(recordings.get('generate')!.body).choices[0].logprobs.content[0].logprob, 6)
    expect(result.pieces.reduce((sum, size) => sum + size, 0)).toBe(tokenIds.length)
    expect(result.pieces.length).toBeGreaterThan(2)
  })

  test('are asked for with what makes the server report, and with the version as salt', async () => {
    use('generate, streaming')
    await generate(await createVllmTokenEngine({ replicas: replicas(), model, weightVersion: 4 }), 22)
    expect(seen().at(-1)!.json).toMatchObject({
      token_ids: Array.from({ length: 22 }, (_, index) => index + 1),
      model: 'tiny',
      stream: true,
      cache_salt: '4',
      sampling_params: { logprobs: 0, temperature: 1, max_tokens: 16, stop_token_ids: [268], seed: expect.any(Number) },
    })
  })

  test.each([
    ['chat', false],
    ['chat, streaming', true],
  ] as const)('are a completion: %s', async (name, stream) => {
    use(name)
    const { answer, outcome } = await converse(await createVllmChatEngine({ replicas: replicas(), model }), readVllm, stream)
    const { completionTokenIds, promptTokenIds, message, finishReason, usage, rolloutLogprobs } = answer()
    expect(Array.from(completionTokenIds)).toEqual(tokenIds)
    expect(promptTokenIds.length).toBe(22)
    expect(message).toEqual({ role: 'assistant', content: 'It is 4, or 5.' })
    expect(finishReason).toEqual({ unified: 'stop', raw: 'stop' })
    expect(usage).toEqual({ promptTokens: 22, completionTokens: 15, cachedTokens: 0 })
    expect(rolloutLogprobs.every((logprob) => logprob < 0 && logprob > -1)).toBe(true)
    expect(outcome.weightVersions).toEqual([0])
  })

  test.each([
    ['chat with a tool call', false],
    ['chat with a tool call, streaming', true],
  ] as const)('are a tool call: %s', async (name, stream) => {
    use(name)
    const { answer } = await converse(await createVllmChatEngine({ replicas: replicas(), model }), readVllm, stream)
    expect(answer().message.toolCalls).toEqual([{ id: expect.stringMatching(/./), name: 'clock', arguments: '{"zone": "UTC"}' }])
    expect(answer().finishReason.unified).toBe('tool-calls')
  })

  test('pass to the client as they are', async () => {
    use('chat, streaming')
    const { text } = await converse(await createVllmChatEngine({ replicas: replicas(), model }), readVllm, true)
    expect(text).toBe(recordings.get('chat, streaming')!.body)
    expect(seen().at(-1)!.json).toMatchObject({ model: 'tiny', return_token_ids: true, logprobs: true, n: 1, seed: null, cache_salt: '0' })
  })

  test('without token ids are no completion', async () => {
    use('chat without token ids')
    const { answer } = await converse(await createVllmChatEngine({ replicas: replicas(), model }), readVllm, false)
    expect(answer).toThrow(expect.objectContaining({ code: 'POLICY_RESPONSE_INVALID', message: expect.stringContaining('token ids') }))
  })

  test.each([
    ['chat beyond the context', 'POLICY_CONTEXT_OVERFLOW'],
    ['unknown model', 'CONFIG_INVALID'],
    ['more tokens than the context holds', 'GATEWAY_BAD_REQUEST'],
  ])('that refuse are typed: %s', async (name, code) => {
    use(name)
    for (const stream of [false, true]) {
      const call = converse(await createVllmChatEngine({ replicas: replicas(), model }), readVllm, stream)
      await expect(call).rejects.toMatchObject({
        code,
        message: expect.stringContaining(messageOf(recordings.get(name)!.body).slice(0, 40)),
      })
    }
  })

  test.each([
    ['generate beyond the context', 'POLICY_CONTEXT_OVERFLOW'],
    ['completions beyond the context', 'POLICY_CONTEXT_OVERFLOW'],
    ['an id beyond the vocabulary', 'GATEWAY_BAD_REQUEST'],
    ['temperature out of range', 'GATEWAY_BAD_REQUEST'],
    ['unknown route', 'CONFIG_INVALID'],
  ])('that refuse are typed: %s', (name, code) => {
    const { status, body } = recordings.get(name)!
    expect(toServerError({ server: 'here', status, body, retryAfter: null })).toMatchObject({ code })
  })

  test('a route that the server lacks is told apart from a model that it does not know', () => {
    const { body } = recordings.get('unknown route')!
    expect(toServerError({ server: 'here', status: 404, body, retryAfter: null }).message).toMatch(
      /does not serve this route: 404 .*--enable-scale-out/,
    )
  })

  test('come from an adapter where the engine is one of a policy', async () => {
    use('chat')
    await converse(await createVllmChatEngine({ replicas: replicas(), model, policy: 'zweite „"x"“' }), readVllm, false)
    expect(seen().at(-1)!.json).toMatchObject({ model: 'zweite „"x"“', cache_salt: expect.stringMatching(/^[0-9a-f]{16}\.0$/) })
  })
})

describe("answers written from SGLang's source", () => {
  const { recordings, chosen, replicas, seen } = serving('sglang-source')
  const use = (name: string) => {
    if (!recordings.has(name)) throw new Error(`There is no recording "${name}".`)
    chosen.name = name
  }
  const engine = () => createSglangTokenEngine({ replicas: replicas(), model: { ...model, contextLength: 4096 }, weightVersion: 3 })

  test.each(['generate, streaming', 'generate, streaming what is new'])('are tokens: %s', async (name) => {
    use(name)
    const tokens = await createSglangTokenEngine({ replicas: replicas(), model, weightVersion: 2 })
    // The recording reports version 3 after the second token, but the fleet never published it.
    await expect(generate(tokens, 4)).rejects.toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
    expect(seen().at(-1)!.json).toMatchObject({
      input_ids: [1, 2, 3, 4],
      return_logprob: true,
      sampling_params: { top_k: -1, max_new_tokens: 16 },
    })
  })

  test.each([['generate, aborted', { finishReason: { unified: 'aborted', raw: 'abort' }, tokenIds: [73] }]])(
    'are tokens: %s',
    async (name, expected) => {
      use(name)
      const tokens = await createSglangTokenEngine({ replicas: replicas(), model, weightVersion: 2 })
      await expect(generate(tokens, 4)).resolves.toMatchObject(expected)
    },
  )

  test.each([
    ['generate beyond the context', 'POLICY_CONTEXT_OVERFLOW'],
    ['generate beyond the context, with completion', 'POLICY_CONTEXT_OVERFLOW'],
  ])('that refuse are typed: %s', async (name, code) => {
    use(name)
    await expect(generate(await engine(), 4)).rejects.toMatchObject({ code })
  })

  test.each([false, true])('are a completion, the client wants a stream: %s', async (stream) => {
    use('chat')
    const chat = await createSglangChatEngine({ replicas: replicas(), model })
    const { answer, type, text } = await converse(chat, readSglang, stream)
    expect(seen().at(-1)!.json).toMatchObject({ stream: false, return_meta_info: true, return_prompt_token_ids: true, logprobs: true })
    expect(type).toMatch(stream ? /^text\/event-stream/ : /^application\/json/)
    if (stream) expect(text).toMatch(/^data: \{.*\}\n\ndata: \[DONE\]\n\n$/s)
    expect(answer()).toEqual({
      promptTokenIds: Int32Array.of(1, 2, 3, 4),
      completionTokenIds: Int32Array.of(73, 116, 268),
      rolloutLogprobs: Float32Array.of(-0.25, -0.5, -0.125),
      message: { role: 'assistant', content: 'It' },
      finishReason: { unified: 'stop', raw: 'stop' },
      usage: { promptTokens: 4, completionTokens: 3, cachedTokens: 0 },
      weightVersions: [
        { fromToken: 0, version: 2 },
        { fromToken: 2, version: 3 },
      ],
    })
  })

  test.each([false, true])('are a tool call, the client wants a stream: %s', async (stream) => {
    use('chat with a tool call')
    const { answer } = await converse(await createSglangChatEngine({ replicas: replicas(), model }), readSglang, stream)
    expect(answer().message).toEqual({
      role: 'assistant',
      content: '',
      reasoning: 'the clock knows',
      toolCalls: [{ id: 'call_6f1c0d2b8e5a4f7c9b3d1e2a', name: 'clock', arguments: '{"zone": "UTC"}' }],
    })
    expect(answer().finishReason).toEqual({ unified: 'tool-calls', raw: 'tool_calls' })
  })

  test('without token ids are no completion', async () => {
    use('chat without token ids')
    const { answer } = await converse(await createSglangChatEngine({ replicas: replicas(), model }), readSglang, false)
    expect(answer).toThrow(expect.objectContaining({ code: 'POLICY_RESPONSE_INVALID' }))
  })

  test('come from an adapter where the engine is one of a policy', async () => {
    use('chat')
    await converse(await createSglangChatEngine({ replicas: replicas(), model, policy: 'helper' }), readSglang, false)
    expect(seen().at(-1)!.json).toMatchObject({
      model: 'tiny',
      lora_path: 'helper',
      cache_salt: expect.stringMatching(/^[0-9a-f]{16}\.0$/),
    })
  })
})
