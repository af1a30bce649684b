import { afterEach, describe, expect, test } from 'vitest'
import { createSglangTokenEngine } from '../sglang/sglang-engines.ts'
import { toyCall } from '../testing/fleet-calls.ts'
import { createTestServer, type Route, sendJson } from '../testing/http-server.ts'
import { toyModel } from '../testing/toy-policy.ts'
import { createVllmChatEngine, createVllmTokenEngine } from '../vllm/vllm-engines.ts'
import { readAnswer } from '../vllm/vllm-reader.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})
const signal = new AbortController().signal
const event = (value: unknown) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`

/** A healthy server whose model routes answer as a test says. */
async function serve(answer: Route) {
  const server = await createTestServer((request, response) => {
    if (request.path === '/health') return void response.writeHead(200).end()
    if (request.method === 'GET') return sendJson(response, 200, { weight_version: 'default' })
    return answer(request, response)
  })
  closers.push(() => server.close())
  return server.url
}

const stream =
  (...events: unknown[]): Route =>
  (_request, response) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(events.map(event).join(''))
const cutStream =
  (...events: unknown[]): Route =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(events.map(event).join(''))
    setTimeout(() => response.destroy(), 10)
  }
const refuse =
  (status: number, body: unknown, headers: Record<string, string> = {}): Route =>
  (_request, response) =>
    sendJson(response, status, body, headers)
const plain =
  (status: number, type: string, body: string): Route =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': type }).end(body)

const choice = (ids: readonly number[], logprobs: readonly unknown[], finish: string | null = null) => ({
  choices: [
    {
      index: 0,
      finish_reason: finish,
      token_ids: ids,
      logprobs: { content: logprobs.map((logprob) => ({ logprob })), token_logprobs: logprobs },
      weight_versions: finish === null ? null : [{ version: 'default', start: 0, end: ids.length }],
    },
  ],
})
const good = choice([1, 2], [-0.5, -0.25])
const error = (message: string) => ({ error: { message, code: 500 } })

const cases: readonly (readonly [name: string, answer: Route, code: string, says: string])[] = [
  [
    '400 for a prompt without room',
    refuse(400, { error: { message: 'longer than the maximum model length of 9' } }),
    'POLICY_CONTEXT_OVERFLOW',
    'room',
  ],
  ['400 for something else', refuse(400, { error: { message: 'min_p must be in [0, 1]' } }), 'GATEWAY_BAD_REQUEST', 'min_p'],
  ['401', refuse(401, { error: 'Unauthorized' }), 'CONFIG_INVALID', 'key'],
  ['404 for the model', refuse(404, { error: { message: 'The model does not exist' } }), 'CONFIG_INVALID', 'name'],
  ['422 with a detail that is a list', refuse(422, { detail: [{ msg: 'Field required' }] }), 'GATEWAY_BAD_REQUEST', 'Field required'],
  ['429', refuse(429, { error: { message: 'queue full' } }, { 'retry-after': '7' }), 'POLICY_RATE_LIMITED', '429'],
  ['500', refuse(500, { error: { message: 'EngineCore encountered an issue' } }), 'POLICY_UNAVAILABLE', 'EngineCore'],
  ['503', refuse(503, { error: { message: 'not ready' } }), 'POLICY_UNAVAILABLE', 'not ready'],
  ['500 with a page', plain(500, 'text/html', '<html>Internal Server Error</html>'), 'POLICY_UNAVAILABLE', 'Internal Server Error'],
  ['a redirect', plain(302, 'text/html', ''), 'POLICY_UNAVAILABLE', '302'],
  ['200 with a page', plain(200, 'text/html', '<html>login</html>'), 'POLICY_RESPONSE_INVALID', 'text/html'],
  ['200 with JSON in place of a stream', refuse(200, { text: 'hello' }), 'POLICY_RESPONSE_INVALID', 'application/json'],
  ['garbage in a stream', stream('{"choices": [{]'), 'POLICY_RESPONSE_INVALID', 'not JSON'],
  ['a number in a stream', stream('17'), 'POLICY_RESPONSE_INVALID', 'in place of an object'],
  [
    'bytes that are no text',
    plain(200, 'text/event-stream', `data: ${Buffer.from([0xff, 0xfe, 0x00]).toString('latin1')}\n\n`),
    'POLICY_RESPONSE_INVALID',
    '',
  ],
  ['half a stream that ends well', stream(good), 'POLICY_RESPONSE_INVALID', 'in the middle'],
  ['half a stream and a closed socket', cutStream(good), 'POLICY_UNAVAILABLE', 'in the middle'],
  ['an empty stream', stream(), 'POLICY_RESPONSE_INVALID', 'in the middle'],
  ['an end and nothing else', stream('[DONE]'), 'POLICY_RESPONSE_INVALID', 'in the middle'],
  ['an error in a stream', stream(good, error('out of memory')), 'POLICY_UNAVAILABLE', 'out of memory'],
  [
    'ids without logprobs',
    stream({ choices: [{ token_ids: [1, 2], finish_reason: 'stop' }] }),
    'POLICY_RESPONSE_INVALID',
    '2 token ids with 0 logprobs',
  ],
  ['logprobs of other length', stream(choice([1, 2], [-0.5], 'stop')), 'POLICY_RESPONSE_INVALID', '2 token ids with 1 logprobs'],
  [
    'logprobs without ids',
    stream({ choices: [{ logprobs: { content: [{ logprob: -1 }] }, finish_reason: 'stop' }] }),
    'POLICY_RESPONSE_INVALID',
    'without token ids',
  ],
  [
    'fewer ids than it counts',
    stream(choice([1, 2], [-1, -1], 'stop'), { choices: [], usage: { completion_tokens: 3 } }),
    'POLICY_RESPONSE_INVALID',
    '2 token ids and counts 3',
  ],
  [
    'a prompt of another length than it was sent',
    stream(choice([1, 2], [-1, -1], 'stop'), { choices: [], usage: { prompt_tokens: 99, completion_tokens: 2 } }),
    'POLICY_RESPONSE_INVALID',
    'counts 99 tokens of a prompt',
  ],
  ['a logprob that is null', stream(choice([1], [null], 'stop')), 'POLICY_RESPONSE_INVALID', 'null as the logprob'],
  ['a logprob above 0', stream(choice([1], [0.5], 'stop')), 'POLICY_RESPONSE_INVALID', '0.5 as the logprob'],
  ['a text as an id', stream(choice(['a'] as unknown as number[], [-1], 'stop')), 'POLICY_RESPONSE_INVALID', '"a" as a token id'],
  ['a negative id', stream(choice([-4], [-1], 'stop')), 'POLICY_RESPONSE_INVALID', '-4 as a token id'],
  ['a closed socket', (_request, response) => void response.destroy(), 'POLICY_UNAVAILABLE', 'without an answer'],
  [
    'weights that nobody published',
    stream({ choices: [{ ...good.choices[0], finish_reason: 'stop', weight_versions: [{ version: '9', start: 0, end: 2 }] }] }),
    'POLICY_STALE_WEIGHTS',
    '"9"',
  ],
]

describe('a token engine whose server answers', () => {
  test.each(cases)('%s', async (_name, answer, code, says) => {
    const engine = await createVllmTokenEngine({ replicas: [await serve(answer)], model: toyModel, unavailableMs: 100 })
    closers.push(() => engine.close())
    const handed: number[] = []
    const call = engine.generate(toyCall({ onTokens: (ids) => void handed.push(...ids) }), signal)
    await expect(call).rejects.toMatchObject({ code, message: expect.stringContaining(says) })
    expect(engine.sampledTokens()).toBe(handed.length)
    expect(engine.fleet.counts()).toMatchObject({ inFlight: 0, waiting: 0 })
  })

  test('nothing at all, until its caller gives up', async () => {
    const engine = await createVllmTokenEngine({ replicas: [await serve(() => {})], model: toyModel })
    closers.push(() => engine.close())
    await expect(engine.generate(toyCall(), AbortSignal.timeout(80))).rejects.toMatchObject({ name: 'TimeoutError' })
    expect(engine.fleet.counts()).toMatchObject({ inFlight: 0 })
  })

  test('with a word for its end that nobody knows', async () => {
    const engine = await createVllmTokenEngine({ replicas: [await serve(stream(choice([1], [-1], 'tired')))], model: toyModel })
    closers.push(() => engine.close())
    await expect(engine.generate(toyCall(), signal)).resolves.toMatchObject({ finishReason: { unified: 'error', raw: 'tired' } })
  })

  test.each([
    ['fewer logprobs than it counts', { output_token_logprobs: [[-1, 5, null]], output_token_logprobs_length: 3 }, '1 logprobs behind 0'],
    ['no logprobs', { completion_tokens: 2 }, 'without token ids and logprobs'],
  ])('%s, SGLang', async (_name, meta, says) => {
    const url = await serve(stream({ meta_info: { finish_reason: { type: 'stop' }, ...meta } }))
    const engine = await createSglangTokenEngine({ replicas: [url], model: toyModel })
    closers.push(() => engine.close())
    await expect(engine.generate(toyCall(), signal)).rejects.toMatchObject({
      code: 'POLICY_RESPONSE_INVALID',
      message: expect.stringContaining(says),
    })
  })

  test('with an abort of its own, SGLang', async () => {
    const abort = { type: 'abort', message: "The input is longer than the model's context length", status_code: 400 }
    const url = await serve(stream({ meta_info: { finish_reason: abort, output_token_logprobs: [] } }))
    const engine = await createSglangTokenEngine({ replicas: [url], model: toyModel })
    closers.push(() => engine.close())
    await expect(engine.generate(toyCall(), signal)).rejects.toMatchObject({ code: 'POLICY_CONTEXT_OVERFLOW' })
  })
})

describe('a chat engine whose server answers', () => {
  const quiet = { onHead() {}, onData: () => true }
  const open = async (answer: Route) => {
    const engine = await createVllmChatEngine({ replicas: [await serve(answer)], model: toyModel, unavailableMs: 100 })
    closers.push(() => engine.close())
    return engine
  }
  const refused = cases.filter(([name]) => /^(?:[45]\d\d|a redirect|a closed socket|half a stream and)/.test(name))

  test.each(refused)('%s', async (_name, answer, code, says) => {
    const engine = await open(answer)
    const call = engine.send({ body: Buffer.from('{"messages":[]}'), stream: true, affinity: 'a' }, quiet, signal)
    await expect(call).rejects.toMatchObject({ code, message: expect.stringContaining(says) })
    expect(engine.fleet.counts()).toMatchObject({ inFlight: 0, waiting: 0 })
  })

  test('429 with when to come again', async () => {
    const engine = await open(refuse(429, {}, { 'retry-after': '7' }))
    const call = engine.send({ body: Buffer.from('{}'), stream: false, affinity: 'a' }, quiet, signal)
    await expect(call).rejects.toMatchObject({ code: 'POLICY_RATE_LIMITED', details: { retryAfterSeconds: 7 } })
  })

  test.each(['', '   ', '[1', '{"a":1', '{}x'])('is not asked where the body is %j', async (text) => {
    const engine = await open(refuse(200, {}))
    const call = engine.send({ body: Buffer.from(text), stream: false, affinity: 'a' }, quiet, signal)
    await expect(call).rejects.toMatchObject({ code: 'GATEWAY_BAD_REQUEST' })
    expect(engine.fleet.counts()).toMatchObject({ inFlight: 0, waiting: 0 })
  })

  const message = { role: 'assistant', content: 'hi' }
  const whole = {
    prompt_token_ids: [1],
    choices: [{ index: 0, message, finish_reason: 'stop', token_ids: [5], logprobs: { content: [{ logprob: -1 }] } }],
  }
  const altered = (change: object) => JSON.stringify({ ...whole, choices: [{ ...whole.choices[0], ...change }] })
  test.each([
    ['nothing', '', 'not JSON'],
    ['a list', '[]', 'no choice'],
    ['no choice', '{"choices":[]}', 'no choice'],
    ['two choices', JSON.stringify({ ...whole, choices: [whole.choices[0], whole.choices[0]] }), 'several choices'],
    ['no prompt ids', JSON.stringify({ choices: whole.choices }), 'without token ids'],
    ['no ids', altered({ token_ids: null }), 'without token ids'],
    ['no logprobs', altered({ logprobs: null }), '1 token ids with 0 logprobs'],
    ['an error', JSON.stringify({ error: { message: 'broken' } }), 'broken'],
    ['no end', altered({ finish_reason: null }), 'in the middle'],
  ])('%s: no completion is made of it', (_name, text, says) => {
    expect(() => readAnswer(Buffer.from(text), false)).toThrow(says)
  })

  test('a stream that stops: no completion is made of it', () => {
    const delta = { index: 0, delta: { content: 'h' }, finish_reason: null, token_ids: [5], logprobs: { content: [{ logprob: -1 }] } }
    const begun = event({ prompt_token_ids: [1], choices: [delta] })
    const ended = event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
    const read = (text: string) => readAnswer(Buffer.from(text), true)
    expect(() => read(begun)).toThrow('in the middle')
    expect(() => read(begun + ended)).toThrow('in the middle')
    expect(read(begun + ended + event('[DONE]')).completionTokenIds).toEqual(Int32Array.of(5))
    expect(() => read(begun + event(error('out of memory')) + event('[DONE]'))).toThrow('out of memory')
  })
})
