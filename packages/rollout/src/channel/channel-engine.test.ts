import {
  type ChannelArrays,
  type ChannelGenerate,
  type ChannelHello,
  type ChannelSubmit,
  type GenerateRequest,
  type ServiceMessage,
  type TokenEngine,
  TrainError,
} from '@aworld-train/core'
import { describeTokenEngine } from '@aworld-train/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { forever } from '../service/start-service.test-support.ts'
import type { EngineConnection } from './channel-connection.ts'
import { createChannelEngine } from './channel-engine.ts'
import type { ChannelEngine } from './channel-types.ts'
import { checkMessages, startChannel, until, writeModel } from './start-channel.test-support.ts'
import type { Submission } from './submission-table.ts'

let model: Awaited<ReturnType<typeof writeModel>>
beforeAll(async () => {
  model = await writeModel()
})
afterAll(() => model[Symbol.asyncDispose]())

const origin = { rollout: 'run/first/train/1/a/0', attempt: 0, agent: 'agent', trajectory: 'agent' }

const request = (overrides: Partial<GenerateRequest> = {}): GenerateRequest => ({
  promptTokenIds: Int32Array.of(1, 2, 3),
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 4, stop: [], seed: 0 },
  random: { seed: 0, task: 'a', sample: 0, turn: 0 },
  affinity: 'a.0',
  origin,
  ...overrides,
})

const never = new AbortController().signal

function hello(overrides: Partial<ChannelHello> = {}): ChannelHello {
  return {
    type: 'hello',
    protocol: 1,
    run: 'run',
    incarnation: 'first',
    worker: 'worker',
    framework: { name: 'test', version: '0' },
    model: { name: 'tiny', vocabularySize: 259, stopTokenIds: [257] },
    tokenizerHash: 'none',
    templateHash: 'none',
    limits: { maxPromptTokens: 60, maxResponseTokens: 40, contextLength: null },
    check: { messages: checkMessages, tools: null, templateArguments: {} },
    ...overrides,
  }
}

/** A connection that records what it is sent. */
function line(): EngineConnection & { readonly sent: { readonly message: ServiceMessage; readonly arrays: ChannelArrays | undefined }[] } {
  const sent: { message: ServiceMessage; arrays: ChannelArrays | undefined }[] = []
  return { sent, send: (message, arrays) => void sent.push({ message, arrays }) }
}

/** An engine with a trainer client that has submitted the rollout of `origin`. */
async function connected(): Promise<{ engine: ChannelEngine; connection: ReturnType<typeof line>; submission: Submission }> {
  const engine = createChannelEngine({ name: 'policy', directory: model.directory })
  await engine.link.check(hello(), model.renderedIds, () => false)
  const connection = line()
  engine.link.join(connection)
  const submission = engine.link.submissions.add({ hello: hello(), connection: null }, { key: origin.rollout } as ChannelSubmit)
  engine.link.connect(submission, connection)
  return { engine, connection, submission }
}

const answer = (ids: number[], overrides: object = {}) =>
  [
    { type: 'generated', id: 1, finish: 'stop', minVersion: 0, maxVersion: 0, ...overrides } as const,
    { ids: Int32Array.from(ids), logprobs: Float32Array.from(ids, () => -0.5) },
  ] as const

// Over real sockets, with a trainer client that samples the same tokens every time.
describeTokenEngine({
  name: 'channel',
  promptTokenIds: Int32Array.of(1, 2, 3),
  create: async () => {
    const started = await startChannel(model, { run: () => forever })
    const client = await started.connect({
      sample: ({ sampling }) => ({ ids: [...Array.from({ length: 5 }, () => 111), 257].slice(0, sampling.maxTokens) }),
    })
    void client.submit({})
    await until(() => started.channel.counts().open === 1)
    const rollout = client.keyOf({})
    const engine = started.engine
    return {
      name: engine.name,
      model: engine.model,
      generate: (call, signal) => engine.generate({ ...call, origin: { ...origin, rollout } }, signal),
      weightVersion: () => engine.weightVersion(),
      sampledTokens: () => engine.sampledTokens(),
      close: () => started[Symbol.asyncDispose](),
    } satisfies TokenEngine
  },
})

describe('a call', () => {
  test('says all of itself, and its answer is the result', async () => {
    const { engine, connection } = await connected()
    const result = engine.generate(request({ random: { seed: 0, task: 'a', sample: 0, turn: 3 } }), never)
    expect(connection.sent).toEqual([
      {
        message: {
          type: 'generate',
          id: 1,
          key: origin.rollout,
          agent: 'agent',
          trajectory: 'agent',
          turn: 3,
          sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 4, stop: [] },
        } satisfies ChannelGenerate,
        arrays: { promptIds: Int32Array.of(1, 2, 3) },
      },
    ])
    engine.link.answer(connection, ...answer([5, 257], { minVersion: 7, maxVersion: 7 }))
    expect(await result).toEqual({
      tokenIds: Int32Array.of(5, 257),
      logprobs: Float32Array.of(-0.5, -0.5),
      finishReason: { unified: 'stop', raw: 'stop' },
      weightVersions: [{ fromToken: 0, version: 7 }],
      cachedTokens: 0,
    })
    expect([engine.weightVersion(), engine.sampledTokens(), engine.link.calls()]).toEqual([7, 2, 0])
  })

  test('with two versions of weights is mixed', async () => {
    const { engine, connection } = await connected()
    const result = engine.generate(request(), never)
    engine.link.answer(connection, ...answer([5, 257], { minVersion: 2, maxVersion: 4 }))
    expect(await result).toMatchObject({ weightVersions: [{ fromToken: 0, version: 2 }], mixedVersions: { lowest: 2, highest: 4 } })
  })

  test.each([
    ['at its limit without a stop token was cut, whatever the trainer calls it', [5, 6, 7, 8], {}, 'length'],
    ['at its limit with a stop token has stopped', [5, 6, 7, 257], {}, 'stop'],
    ['below its limit has stopped where the trainer says so', [5], {}, 'stop'],
    ['that the trainer says was cut', [5], { finish: 'length' }, 'length'],
  ])('%s', async (_name, ids, overrides, unified) => {
    const { engine, connection } = await connected()
    const result = engine.generate(request(), never)
    engine.link.answer(connection, ...answer(ids, overrides))
    expect((await result).finishReason.unified).toBe(unified)
  })

  const wrong = (ids: number[], logprobs: number[]) => ({ ids: Int32Array.from(ids), logprobs: Float32Array.from(logprobs) })
  test.each<[string, object, ChannelArrays, string, boolean]>([
    ['given up without a token may be sent again', { finish: 'aborted' }, wrong([], []), 'POLICY_ABORTED', true],
    ['given up with tokens may be sent again', { finish: 'aborted' }, wrong([5], [-1]), 'POLICY_ABORTED', true],
    ['that ends without a token', {}, wrong([], []), 'POLICY_RESPONSE_INVALID', false],
    ['without arrays', {}, {}, 'POLICY_RESPONSE_INVALID', false],
    ['with arrays of another type', {}, { ids: Float32Array.of(1), logprobs: Float32Array.of(1) }, 'POLICY_RESPONSE_INVALID', false],
    ['with fewer logprobs than ids', {}, wrong([5, 6], [-1]), 'POLICY_RESPONSE_INVALID', false],
    ['with a logprob that is no number', {}, wrong([5, 6], [-1, Number.NaN]), 'POLICY_RESPONSE_INVALID', false],
    ['with an infinite logprob', {}, wrong([5, 6], [-1, -Infinity]), 'POLICY_RESPONSE_INVALID', false],
    ['with an id beyond the vocabulary', {}, wrong([5, 259], [-1, -1]), 'POLICY_RESPONSE_INVALID', false],
    ['with a negative id', {}, wrong([-1], [-1]), 'POLICY_RESPONSE_INVALID', false],
    ['with versions in the wrong order', { minVersion: 2, maxVersion: 1 }, wrong([5], [-1]), 'POLICY_RESPONSE_INVALID', false],
  ])('%s fails', async (_name, overrides, arrays, code, retryable) => {
    const { engine, connection } = await connected()
    const handed: number[] = []
    const result = engine.generate(request({ onTokens: (ids) => void handed.push(...ids) }), never)
    engine.link.answer(connection, answer([], overrides)[0], arrays)
    await expect(result).rejects.toMatchObject({ code, retryable })
    expect(engine.link.calls()).toBe(0)
    // Tokens of a call that was given up were drawn, so they are handed over to be counted.
    expect(handed).toEqual(code === 'POLICY_ABORTED' ? Array.from(arrays['ids']!) : [])
  })

  test.each([
    ['of the catalogue as it is', { code: 'ROLLOUT_CLOSED', message: 'Over.', retryable: false }, 'ROLLOUT_CLOSED'],
    ['of its own that may pass', { code: 'RayActorError', message: 'Gone.', retryable: true }, 'POLICY_UNAVAILABLE'],
    ['of its own that may not', { code: 'ValueError', message: 'Bad.', retryable: false }, 'POLICY_FAILED'],
  ])('fails with an error of the trainer, %s', async (_name, error, code) => {
    const { engine, connection } = await connected()
    const result = engine.generate(request(), never)
    engine.link.answer(connection, { type: 'generate-failed', id: 1, error }, {})
    await expect(result).rejects.toMatchObject({ code, retryable: error.retryable, details: { clientCode: error.code } })
  })

  test('of nobody, of another rollout, after the end of its rollout or of the engine is refused', async () => {
    const { engine } = await connected()
    await expect(engine.generate(request({ origin: undefined }), never)).rejects.toMatchObject({ code: 'CHANNEL_LOST' })
    const other = { ...origin, rollout: 'run/first/train/1/b/0' }
    await expect(engine.generate(request({ origin: other }), never)).rejects.toMatchObject({ code: 'CHANNEL_LOST', retryable: true })
    const late = engine.generate(request(), never)
    await engine.close()
    await expect(late).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
    await expect(engine.generate(request(), never)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
  })

  test('that is aborted says so once, and its late answer is counted and not used', async () => {
    const { engine, connection } = await connected()
    const controller = new AbortController()
    const result = engine.generate(request(), controller.signal)
    const reason = new Error('enough')
    controller.abort(reason)
    await expect(result).rejects.toBe(reason)
    engine.link.answer(connection, ...answer([5, 257]))
    expect(connection.sent.map(({ message }) => message.type)).toEqual(['generate', 'abort'])
    expect([engine.sampledTokens(), engine.link.calls()]).toEqual([2, 0])
  })
})

describe('a lost connection', () => {
  test('lets calls wait for the next one of their rollout, and an answer of the old one is nobody’s', async () => {
    const { engine, connection, submission } = await connected()
    const before = engine.generate(request(), never)
    engine.link.disconnect(connection)
    expect(engine.health?.()).toMatchObject({ ready: false, reason: 'no trainer is connected' })
    const between = engine.generate(request(), never)
    engine.link.answer(connection, ...answer([9, 257]))
    const next = line()
    engine.link.join(next)
    engine.link.connect(submission, next)
    expect(next.sent.map(({ message }) => message)).toMatchObject([{ id: 1 }, { id: 2 }])
    engine.link.answer(next, ...answer([5, 257]))
    engine.link.answer(next, ...answer([6, 257], { id: 2 }))
    expect([Array.from((await before).tokenIds), Array.from((await between).tokenIds)]).toEqual([
      [5, 257],
      [6, 257],
    ])
  })

  test('fails them where nobody comes back, and the aborted one stays aborted', async () => {
    const { engine, connection, submission } = await connected()
    const controller = new AbortController()
    const call = engine.generate(request(), controller.signal)
    const waiting = engine.generate(request(), never)
    engine.link.disconnect(connection)
    controller.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
    engine.link.release(submission, new TrainError('CHANNEL_LOST', 'Nobody came back.'))
    await expect(waiting).rejects.toMatchObject({ code: 'CHANNEL_LOST', retryable: true })
    expect(engine.link.calls()).toBe(0)
  })
})

describe('a rollout', () => {
  test('that is submitted again over its own connection is sampled once', async () => {
    const { engine, connection, submission } = await connected()
    const result = engine.generate(request(), never)
    engine.link.connect(submission, connection)
    engine.link.answer(connection, ...answer([5, 257]))
    expect((await result).tokenIds.length).toBe(2)
    expect(connection.sent.length).toBe(1)
  })

  test('that another worker takes over is sampled by that one', async () => {
    const { engine, connection, submission } = await connected()
    const result = engine.generate(request(), never)
    const other = line()
    engine.link.join(other)
    engine.link.connect(submission, other)
    engine.link.answer(connection, ...answer([9, 257]))
    engine.link.answer(other, ...answer([5, 257]))
    expect(Array.from((await result).tokenIds)).toEqual([5, 257])
    expect(connection.sent.map(({ message }) => message.type)).toEqual(['generate', 'abort'])
    expect(engine.sampledTokens()).toBe(4)
  })
})

describe('versions of weights', () => {
  test('only rise, until another start of the trainer', async () => {
    const { engine } = await connected()
    engine.link.weights(3)
    engine.link.weights(2)
    expect(engine.weightVersion()).toBe(3)
    engine.link.weights(1, { restart: true })
    expect(engine.weightVersion()).toBe(1)
  })
})

test('a model without a folder needs a place for the files of its trainer', () => {
  expect(() => createChannelEngine({ name: 'policy', directory: null })).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
})

test('the context of the engine is the trainer’s, or what a row may have', async () => {
  const { engine } = await connected()
  expect(engine.model).toMatchObject({ name: 'policy', contextLength: 100, vocabularySize: 259, stopTokenIds: [257] })
  const call = engine.generate(request({ promptTokenIds: new Int32Array(100) }), never)
  await expect(call).rejects.toMatchObject({ code: 'POLICY_CONTEXT_OVERFLOW' })
})
