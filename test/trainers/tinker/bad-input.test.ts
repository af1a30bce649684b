// @module-tag quick
import { readdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { GenerateRequest, TrainingSample, UpdateRequest } from '@aworld-train/core'
import { createTinkerEngine, describeService, type TinkerEngineOptions } from '@aworld-train/engines/tinker'
import type { TinkerCall, TinkerServerOptions } from '@aworld-train/testing'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { makeTinyFolder } from '../../../packages/engines/src/local/testing/tiny-model.ts'
import { openTinkerService } from '../../support/tinker-service.ts'

const folder = await makeTinyFolder()
afterAll(() => rm(dirname(folder.directory), { recursive: true }))

const sampleOf = (tokenIds: readonly number[], change: Partial<TrainingSample> = {}): TrainingSample => ({
  version: 2,
  tokenIds: Int32Array.from(tokenIds),
  lossMask: Uint8Array.from(tokenIds, (_, at) => Number(at > 1)),
  rolloutLogprobs: new Float32Array(tokenIds.length).fill(-3),
  weightVersions: [{ fromToken: 0, version: 0 }],
  reward: 1,
  advantage: 1,
  group: 'group',
  agent: 'agent',
  trajectory: 'agent',
  policy: 'policy',
  provenance: { rollout: 'rollout', attempt: 0, taskId: 'task', sample: 0, turns: [0] },
  ...change,
})
const update = (change: Partial<UpdateRequest> = {}): UpdateRequest => ({
  samples: [sampleOf([1, 2, 3, 4]), sampleOf([2, 4, 6, 2, 4])],
  loss: { kind: 'ppo-clip', clipLow: 0.2, clipHigh: 0.28, klCoefficient: 0, entropyCoefficient: 0, aggregation: 'token-mean' },
  optimizer: { learningRate: 1e-2, betas: [0.9, 0.95], epsilon: 1e-8, weightDecay: 0, maxGradNorm: 0 },
  ...change,
})
const linear = (lengths: readonly number[], value: number) =>
  ({
    kind: 'linear',
    coefficients: lengths.map((length) => new Float32Array(length).fill(value)),
    entropyCoefficient: 0,
    aggregation: 'token-mean',
  }) as const
const call = (turn = 0): GenerateRequest => ({
  promptTokenIds: Int32Array.of(256, 5, 6, 7),
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 8, stop: [], seed: 0 },
  random: { seed: 7, task: 'task', sample: 0, turn },
  affinity: 'task.0',
})
const never = new AbortController().signal
const impatient = { patienceMs: 2_000, resultMs: 60_000 }
/** Long enough for a busy machine to make a model in, since a wait of this length is tested. */
const hurried = { resultMs: 10_000 }

async function open(server: Partial<TinkerServerOptions> = {}, options: Partial<TinkerEngineOptions> = {}) {
  const service = await openTinkerService(folder.directory, { holdMs: 50, ...server })
  onTestFinished(() => service[Symbol.asyncDispose]())
  const connect = async () => {
    const tinker = await createTinkerEngine({ url: service.url, model: folder.directory, name: 'tiny', ...impatient, ...options })
    onTestFinished(() => tinker.close())
    return tinker
  }
  return { service, connect }
}

const isResultOf = (name: string) => (each: TinkerCall) => each.name === 'retrieve_future' && each.future === name
const submitted = (calls: readonly TinkerCall[], name: string) => calls.filter((each) => each.name === name).length

describe('connecting', () => {
  test('nobody at the address is POLICY_UNAVAILABLE after the patience', async () => {
    const { service, connect } = await open()
    await service.close()
    await expect(connect()).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE', message: expect.stringContaining(service.url) })
  })

  test('a name that no network knows is POLICY_UNAVAILABLE', async () => {
    await expect(describeService({ url: 'http://tinker.invalid', ...impatient })).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
  })

  test.each(['tinker', 'ftp://host', ''])('the address "%s" is CONFIG_INVALID', async (url) => {
    await expect(describeService({ url })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })

  test.each(['http://me:secret@host', 'http://host/?key=secret', 'http://host/#secret'])(
    'the address %s, with more than a place, is CONFIG_INVALID and not quoted',
    async (url) => {
      const error = await describeService({ url }).catch((thrown: Error) => thrown)
      expect(error).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('tinker.url') })
      expect(JSON.stringify(error) + String(error)).not.toContain('secret')
    },
  )

  test.each(['', 'secret key', 'secret\n', 'secret\r\nx: y', 'secrét'])('the key %j is CONFIG_INVALID and not quoted', async (apiKey) => {
    const error = await describeService({ url: 'http://127.0.0.1:1', apiKey, ...impatient }).catch((thrown: Error) => thrown)
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('TINKER_API_KEY') })
    expect(JSON.stringify(error) + String(error)).not.toContain('secr')
  })

  test('a wrong key, 401, is CONFIG_INVALID and names TINKER_API_KEY, never the key', async () => {
    const { connect } = await open({ apiKey: 'right' }, { apiKey: 'wrong-key' })
    const error = await connect().catch((thrown: Error) => thrown)
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('TINKER_API_KEY') })
    expect(JSON.stringify(error)).not.toContain('wrong-key')
    const { connect: withKey } = await open({ apiKey: 'right' }, { apiKey: 'right' })
    await withKey()
  })

  test('a server of another kind, 404, is CONFIG_INVALID', async () => {
    const { service, connect } = await open()
    service.intercept(() => ({ status: 404, body: '{"detail":"Not Found"}' }))
    await expect(connect()).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('does not serve') })
  })

  test('a model that the service does not train is CONFIG_INVALID with those that it does', async () => {
    const { connect } = await open({}, { baseModel: 'huge' })
    await expect(connect()).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('tiny') })
  })

  test.each([
    ['a rank above what it takes', { rank: 64 }, /rank/i],
    ['a choice of modules that it drops in silence', { trainUnembedding: true }, /train_unembed is true here and false there/],
  ])('%s is CONFIG_INVALID, and leaves no model there', async (_, lora, message) => {
    const { service, connect } = await open({}, { lora })
    await expect(connect()).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) })
    expect(service.models()).toBe(0)
  })

  test('a service whose places are all taken is POLICY_RATE_LIMITED', async () => {
    const { connect } = await open({ maxModels: 1 })
    await connect()
    await expect(connect()).rejects.toMatchObject({ code: 'POLICY_RATE_LIMITED' })
  })

  test('a service that answers 429 is asked again, and in the end POLICY_RATE_LIMITED', async () => {
    const { service, connect } = await open()
    let refusals = 1
    service.intercept(() => (refusals-- > 0 ? { status: 429 } : null))
    await connect()
    service.intercept(() => ({ status: 429 }))
    await expect(connect()).rejects.toMatchObject({ code: 'POLICY_RATE_LIMITED' })
  })
})

describe('sampling', () => {
  test('a result that is not there yet is asked for again: 408, try_again, a connection that breaks', async () => {
    const { service, connect } = await open()
    const { engine } = await connect()
    const answers = [{ status: 408, body: '' }, { status: 200, body: '{"type":"try_again","queue_state":"active"}' }, 'drop' as const]
    service.intercept((each) => (isResultOf('asample')(each) ? (answers.pop() ?? null) : null))
    const { tokenIds } = await engine.generate(call(), never)
    expect(tokenIds.length).toBeGreaterThan(0)
    expect(answers).toEqual([])
    expect(submitted(service.calls, 'asample')).toBe(1)
  })

  test('a service without capacity for a sample is POLICY_RATE_LIMITED at the deadline', async () => {
    const { service, connect } = await open({}, hurried)
    const { engine } = await connect()
    service.intercept((each) =>
      isResultOf('asample')(each) ? { status: 408, body: '{"type":"try_again","queue_state":"paused_capacity"}' } : null,
    )
    await expect(engine.generate(call(), never)).rejects.toMatchObject({ code: 'POLICY_RATE_LIMITED' })
  })

  test('a service that never answers is POLICY_UNAVAILABLE at the deadline', async () => {
    const { service, connect } = await open({}, hurried)
    const { engine } = await connect()
    service.intercept((each) => (isResultOf('asample')(each) ? 'hang' : null))
    await expect(engine.generate(call(), never)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
  })

  test.each([404, 410])('a sample whose future is gone, %s, can be drawn again: POLICY_ABORTED', async (status) => {
    const { service, connect } = await open()
    const { engine } = await connect()
    service.intercept((each) => (isResultOf('asample')(each) ? { status, body: '{"detail":"Future not found"}' } : null))
    await expect(engine.generate(call(), never)).rejects.toMatchObject({ code: 'POLICY_ABORTED', retryable: true })
    service.intercept(null)
    await engine.generate(call(), never)
  })

  test('a model that has expired is POLICY_WORKER_DIED', async () => {
    const { service, connect } = await open()
    const { engine } = await connect()
    service.intercept((each) => (each.name === 'asample' ? { status: 404, body: `{"detail":"Model 'model_1' not found"}` } : null))
    await expect(engine.generate(call(), never)).rejects.toMatchObject({ code: 'POLICY_WORKER_DIED' })
  })

  test.each([
    ['torn protocol buffers', Buffer.from([0x0a, 0x20, 0x12, 0x04])],
    ['no sequence', Buffer.alloc(0)],
    ['a sequence without a token', Buffer.from([0x0a, 0x00])],
    ['logprobs that are not finite', Buffer.from([0x0a, 0x0c, 0x12, 0x04, 5, 0, 0, 0, 0x1a, 0x04, 0, 0, 0xc0, 0x7f])],
    ['an id outside of the vocabulary', Buffer.from([0x0a, 0x0c, 0x12, 0x04, 0, 0, 9, 0, 0x1a, 0x04, 0, 0, 0, 0xbf])],
  ])('%s are POLICY_RESPONSE_INVALID', async (_, body) => {
    const { service, connect } = await open()
    const { engine } = await connect()
    service.intercept((each) => (isResultOf('asample')(each) ? { status: 200, body, type: 'application/x-protobuf' } : null))
    await expect(engine.generate(call(), never)).rejects.toMatchObject({ code: 'POLICY_RESPONSE_INVALID' })
    expect(engine.sampledTokens()).toBe(0)
  })

  test('what the protocol cannot do is refused before it is sent', async () => {
    const { service, connect } = await open()
    const { engine } = await connect()
    const { sampling } = call()
    await expect(engine.generate({ ...call(), sampling: { ...sampling, temperature: 0.5 } }, never)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    })
    await expect(engine.generate({ ...call(), sampling: { ...sampling, stop: ['x'] } }, never)).rejects.toMatchObject({
      code: 'GATEWAY_BAD_REQUEST',
    })
    expect(submitted(service.calls, 'asample')).toBe(0)
  })
})

describe('training', () => {
  test.each([
    ['a NaN advantage', { samples: [sampleOf([1, 2, 3], { advantage: Number.NaN })] }, 'TRAINER_NOT_FINITE'],
    ['a NaN logprob', { samples: [sampleOf([1, 2, 3], { rolloutLogprobs: Float32Array.of(0, 0, Number.NaN) })] }, 'TRAINER_NOT_FINITE'],
    ['an infinite advantage', { samples: [sampleOf([1, 2, 3], { advantage: 1e300 })] }, 'TRAINER_NOT_FINITE'],
    ['a row beyond the context', { samples: [sampleOf(new Array<number>(97).fill(1))] }, 'POLICY_CONTEXT_OVERFLOW'],
    ['logprobs of another length', { samples: [sampleOf([1, 2, 3], { rolloutLogprobs: new Float32Array(2) })] }, 'TRAINER_SAMPLE_INVALID'],
    ['no trained token', { samples: [sampleOf([1, 2])] }, 'TRAINER_EMPTY_BATCH'],
    ['a NaN coefficient', { loss: linear([4, 5], Number.NaN) }, 'TRAINER_NOT_FINITE'],
    ['an infinite coefficient', { loss: linear([4, 5], Number.NEGATIVE_INFINITY) }, 'TRAINER_NOT_FINITE'],
    ['coefficients of another length', { loss: linear([4, 4], 1) }, 'TRAINER_SAMPLE_INVALID'],
    ['coefficients of too few samples', { loss: linear([4], 1) }, 'TRAINER_SAMPLE_INVALID'],
    ['a term for entropy', { loss: { ...update().loss, entropyCoefficient: 0.1 } }, 'CONFIG_INVALID'],
    ['a term for entropy beside coefficients', { loss: { ...linear([4, 5], 1), entropyCoefficient: 0.1 } }, 'CONFIG_INVALID'],
    ['a clip of the gradient', { optimizer: { ...update().optimizer, maxGradNorm: 1 } }, 'CONFIG_INVALID'],
    ['a decay of weights', { optimizer: { ...update().optimizer, weightDecay: 0.01 } }, 'CONFIG_INVALID'],
    ['a temperature', { temperature: 0.5 }, 'CONFIG_INVALID'],
  ] as readonly (readonly [string, Partial<UpdateRequest>, string])[])('%s is refused and not sent', async (_, change, code) => {
    const { service, connect } = await open()
    const { learner } = await connect()
    await expect(learner.update(update(change))).rejects.toMatchObject({ code })
    expect(submitted(service.calls, 'forward_backward')).toBe(0)
    await learner.update(update())
  })

  test('a server that takes no protocol buffers, 415, is CONFIG_INVALID', async () => {
    const { service, connect } = await open()
    const { learner } = await connect()
    service.intercept((each) => (each.name === 'forward_backward' ? { status: 415 } : null))
    await expect(learner.logprobs([Int32Array.of(1, 2)], 1)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await expect(learner.update(update())).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    service.intercept(null)
    await learner.update(update())
  })

  test.each([
    ['forward_backward', { status: 404, body: '{"detail":"Future not found"}' }, 'POLICY_WORKER_DIED'],
    ['optim_step', { status: 410 }, 'POLICY_WORKER_DIED'],
    ['forward_backward', { status: 200, body: Buffer.from([0x12, 0x40]), type: 'application/x-protobuf' }, 'POLICY_RESPONSE_INVALID'],
    ['optim_step', { status: 400, body: '{"detail":"out of memory"}' }, 'POLICY_FAILED'],
  ] as const)(
    'a %s that is lost leaves weights that nobody knows: nothing more is trained or published until a checkpoint is loaded',
    async (name, answer, code) => {
      const { service, connect } = await open()
      const { learner } = await connect()
      const ids = [Int32Array.of(1, 2, 3, 4)]
      const before = await learner.logprobs(ids, 1)
      const checkpoint = folder.path(`checkpoint-${name}-${code}`)
      await learner.save(checkpoint)
      service.intercept((each) => (isResultOf(name)(each) ? answer : null))
      await expect(learner.update(update())).rejects.toMatchObject({ code })
      service.intercept(null)
      for (const after of [
        () => learner.update(update()),
        () => learner.publish(),
        () => learner.logprobs(ids, 1),
        () => learner.save(checkpoint),
      ])
        await expect(after()).rejects.toMatchObject({ code: 'POLICY_WORKER_DIED' })
      await learner.load(checkpoint)
      expect(await learner.logprobs(ids, 1)).toEqual(before)
      await learner.update(update())
    },
  )

  test('a service that dies in mid-step is POLICY_UNAVAILABLE within its deadline', async () => {
    const { service, connect } = await open()
    const { learner, engine } = await connect()
    service.intercept((each) => {
      if (each.name === 'optim_step') setImmediate(() => void service.close())
      return isResultOf('forward_backward')(each) || isResultOf('optim_step')(each) ? 'hang' : null
    })
    await expect(learner.update(update())).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
    await expect(engine.generate(call(), never)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
  })

  test('a checkpoint that the service has lost, or a folder without a pointer, is CHECKPOINT_CORRUPT and leaves the policy as it was', async () => {
    const { service, connect } = await open()
    const { learner, engine } = await connect()
    const checkpoint = folder.path('lost')
    await learner.save(checkpoint)
    expect(await readdir(checkpoint)).toEqual(['tinker.json'])
    service.intercept((each) => (isResultOf('load_weights')(each) ? { status: 400, body: '{"detail":"Checkpoint not found"}' } : null))
    await expect(learner.load(checkpoint)).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' })
    service.intercept(null)
    await expect(learner.load(folder.directory)).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' })
    await engine.generate(call(), never)
    expect(service.models()).toBe(1)
  })

  test.each([
    [401, '{"detail":"Invalid API key"}', 'CONFIG_INVALID'],
    [429, '', 'POLICY_RATE_LIMITED'],
    [400, '{"detail":"at capacity"}', 'POLICY_RATE_LIMITED'],
  ])('a checkpoint that cannot be asked for, %s %s, is %s: the one before it is no better', async (status, body, code) => {
    const { service, connect } = await open()
    const { learner, engine } = await connect()
    const checkpoint = folder.path(`refused-${status}`)
    await learner.save(checkpoint)
    service.intercept((each) => (isResultOf('load_weights')(each) ? { status, body } : null))
    await expect(learner.load(checkpoint)).rejects.toMatchObject({ code })
    service.intercept(null)
    await engine.generate(call(), never)
    expect(service.models()).toBe(1)
  })

  test('a checkpoint at another service is CONFIG_INVALID with the address of that one', async () => {
    const { service, connect } = await open()
    const checkpoint = folder.path('elsewhere')
    await (await connect()).learner.save(checkpoint)
    const elsewhere = await (await open()).connect()
    await expect(elsewhere.learner.load(checkpoint)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(`${service.url}.*tinker\\.url`),
    })
  })
})

describe('the order of things', () => {
  test('a publish waits for the samples in flight, and has a path of its own that later samples name', async () => {
    const { service, connect } = await open()
    const { learner, engine } = await connect()
    let held = true
    const waiting = Promise.withResolvers<void>()
    service.intercept((each) => {
      if (!held || !isResultOf('asample')(each)) return null
      waiting.resolve()
      return { status: 408, body: '' }
    })
    const first = engine.generate(call(), never)
    await waiting.promise
    const published = learner.publish()
    const polls = service.calls.length
    await expect.poll(() => service.calls.length).toBeGreaterThan(polls + 5)
    expect(submitted(service.calls, 'save_weights_for_sampler')).toBe(1)
    const late = engine.generate(call(1), never)
    held = false
    expect((await first).weightVersions).toEqual([{ fromToken: 0, version: 0 }])
    expect(await published).toBe(1)
    expect((await late).weightVersions).toEqual([{ fromToken: 0, version: 1 }])
    const paths = service.calls.filter(({ name }) => name === 'asample').map(({ json }) => json['model_path'])
    expect(new Set(paths).size).toBe(2)
  })

  test('gradient and step are sent together', async () => {
    const { service, connect } = await open()
    const { learner } = await connect()
    await learner.update(update())
    const names = service.calls.map(({ name, future }) => future ?? name)
    const backward = names.indexOf('forward_backward')
    expect(names.indexOf('optim_step')).toBe(backward + 1)
  })

  test('a session is kept alive every ten seconds, until it is closed', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { service, connect } = await open()
    const tinker = await connect()
    vi.advanceTimersByTime(30_000)
    await expect.poll(() => submitted(service.calls, 'session_heartbeat')).toBe(3)
    await tinker.close()
    vi.advanceTimersByTime(30_000)
    expect(service.models()).toBe(0)
    expect(submitted(service.calls, 'session_heartbeat')).toBe(3)
  })
})
