import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Reward } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../testing/memory-store.ts'
import { filesHash } from './model-files.ts'
import { heldSampler, sampled, startChannel, toTask, until, writeModel } from './start-channel.test-support.ts'

let model: Awaited<ReturnType<typeof writeModel>>
beforeAll(async () => {
  model = await writeModel()
})
afterAll(() => model[Symbol.asyncDispose]())

describe('a trainer client', () => {
  test('gets the rows of what it submitted, sampled by itself', async () => {
    await using started = await startChannel(model, { calls: 2 })
    const client = await started.connect()
    expect(client.welcome).toMatchObject({ needFiles: false, graceMs: 30_000, pingMs: 15_000 })
    expect(client.welcome.settings).toEqual({ rolloutTimeoutMs: null, reward: 'service', rowSelection: 'all' })
    const result = await client.submit({ row: { rewardModel: { ground_truth: 'sampled' } } })
    expect(result).toMatchObject({
      status: 'done',
      stopReason: 'completed',
      reward: 1,
      scores: { exact: 1 },
      error: null,
      turns: 2,
      answer: 'sampled',
      omitted: {},
      rows: [{ agent: 'agent', promptLength: 3, length: 11, minVersion: 0, maxVersion: 0, turns: [0, 1], reward: 1 }],
    })
    const [row] = result.tokens
    expect(Array.from(row!.ids)).toEqual([1, 2, 3, 111, 107, 257, 7, 8, 111, 107, 257])
    expect(Array.from(row!.mask)).toEqual([0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1])
    expect(row!.logprobs[3]).toBeCloseTo(-0.1, 6)
    expect(client.heard.map(({ type }) => type)).toEqual(['welcome', 'ready', 'queued', 'started', 'generate', 'generate', 'result'])
    expect(started.engine.sampledTokens()).toBe(client.sampledTokens())
    client.send({ type: 'accepted', key: result.key })
    await until(() => started.outcomes.length === 2)
    expect(started.outcomes).toMatchObject([{ outcome: 'sent', rows: 1, maskTokens: 6, partition: 'train' }, { outcome: 'accepted' }])
    expect(started.channel.counts()).toMatchObject({ connections: 1, workers: 1, open: 0, calls: 0, rejected: 0, lost: 0, reconnects: 0 })
  })

  test('samples for its own rollouts only, each call once', async () => {
    await using started = await startChannel(model)
    const keys = [new Set<string>(), new Set<string>()]
    const clients = await Promise.all(
      keys.map((workerKeys, index) =>
        started.connect({ hello: { worker: `worker-${index}` }, sample: ({ key }) => workerKeys.add(key) && sampled }),
      ),
    )
    const results = await Promise.all(
      clients.flatMap((client, index) => [0, 1, 2, 3].map((sample) => client.submit({ uid: `task-${index}`, sample }))),
    )
    expect(results.every(({ status }) => status === 'done')).toBe(true)
    for (const [index, workerKeys] of keys.entries()) {
      expect([...workerKeys].sort()).toEqual([0, 1, 2, 3].map((sample) => `run/first/train/1/task-${index}/${sample}`))
    }
  })

  test('has its rollouts kept with its step and the kind of their task', async () => {
    await using started = await startChannel(model, { toTask: (row, submit) => ({ ...toTask(row, submit), kind: 'hard' }) })
    const client = await started.connect()
    await client.submit({})
    expect(started.store.rollout(client.keyOf({}))?.request).toMatchObject({ step: 1, kind: 'hard' })
  })

  test('that submits twice gets one rollout and its result once', async () => {
    await using started = await startChannel(model)
    const { calls, release, sample } = heldSampler()
    const client = await started.connect({ sample })
    const both = [client.submit({}), client.submit({})]
    await until(() => calls.length === 1)
    both.push(client.submit({}))
    await until(() => client.heard.filter(({ type }) => type === 'queued').length === 3)
    release(sampled)
    const [one, other] = await Promise.all(both)
    expect(one).toBe(other)
    const again = await client.submit({})
    expect(again.rows).toEqual(one!.rows)
    expect(calls.length).toBe(1)
    const types = client.heard.map(({ type }) => type)
    expect(types.filter((type) => type === 'result').length).toBe(2)
  })

  test('gets its result of the episode as it ended; the store is read for one that asks again', async () => {
    await using started = await startChannel(model)
    const client = await started.connect()
    const { rows } = await client.submit({})
    expect([rows.length, started.store.reads]).toEqual([1, 0])
    expect((await client.submit({})).rows).toEqual(rows)
    expect(started.store.reads).toBe(1)
  })

  test('is told of another submission under a key that is taken', async () => {
    await using started = await startChannel(model)
    const client = await started.connect()
    await client.submit({})
    const result = await client.submit({ row: { prompt: [{ role: 'user', content: 'Something else.' }] } })
    expect(result).toMatchObject({ status: 'failed', rows: [], error: { code: 'ROLLOUT_CONFLICT', retryable: false } })
  })

  test('is told of a row that is no task, and of a key of others', async () => {
    const toTask = () => {
      throw new Error('the row has no prompt')
    }
    await using started = await startChannel(model, { toTask })
    const client = await started.connect()
    expect(await client.submit({})).toMatchObject({
      status: 'failed',
      error: { code: 'ROLLOUT_INVALID', message: 'the row has no prompt' },
    })
    const { heard } = client
    const message = { type: 'submit', partition: 'train', step: 1, uid: 'a', sample: 0, row: { prompt: [] }, deadlineMs: null }
    const sampling = { temperature: 1, topP: 1, topK: 0, repetitionPenalty: 1 }
    client.send({ ...message, sampling, key: 'run/other/train/1/a/0' })
    await until(() => heard.at(-1)?.type === 'result' && heard.length === 4)
    expect(heard.at(-1)).toMatchObject({ error: { code: 'ROLLOUT_INVALID', message: expect.stringContaining('incarnation') } })
  })

  test('that cancels is answered with nothing, and may submit again', async () => {
    await using started = await startChannel(model)
    let calls = 0
    const client = await started.connect({ sample: () => (calls++ === 0 ? 'never' : sampled) })
    void client.submit({})
    await until(() => calls === 1)
    client.cancel(client.keyOf({}))
    const result = await client.submit({})
    expect(result.status).toBe('done')
    expect(client.aborted).toEqual([1])
    expect(client.heard.filter(({ type }) => type === 'result').length).toBe(1)
    expect(started.outcomes.map(({ outcome }) => outcome)).toEqual(['cancelled', 'sent'])
    expect(started.store.episode(result.key)?.attempt).toBe(1)
  })

  test('that submits again while its rollout is still being cancelled waits for that, and does not sample for the cancelled one', async () => {
    const store = memoryStore()
    const { cancel } = store
    const gate = Promise.withResolvers<void>()
    store.cancel = async (...attempt) => {
      await gate.promise
      await cancel(...attempt)
    }
    await using started = await startChannel(model, { store })
    // The service cannot close while a cancellation waits.
    using _gate = { [Symbol.dispose]: gate.resolve }
    let calls = 0
    const client = await started.connect({ sample: () => (calls++ === 0 ? 'never' : sampled) })
    const heard = () => client.heard.map(({ type }) => type).filter((type) => type === 'queued' || type === 'started')
    void client.submit({})
    await until(() => calls === 1)
    client.cancel(client.keyOf({}))
    void client.submit({})
    const result = client.submit({})
    await until(() => heard().length === 3)
    expect(started.service.get(client.keyOf({})).status).toBe('running')
    const lateCall = started.engine.generate(
      {
        promptTokenIds: Int32Array.of(1),
        sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 4, stop: [], seed: 0 },
        random: { seed: 0, task: 'a', sample: 0, turn: 1 },
        affinity: 'a.0',
        origin: { rollout: client.keyOf({}), attempt: 0, agent: 'agent', trajectory: 'agent' },
      },
      new AbortController().signal,
    )
    await expect(lateCall).rejects.toMatchObject({ code: 'CHANNEL_LOST' })
    gate.resolve()
    expect((await result).status).toBe('done')
    expect([heard(), calls]).toEqual([['queued', 'started', 'queued', 'queued', 'started'], 2])
  })

  test('hears of a rollout that the service cancels', async () => {
    await using started = await startChannel(model)
    const { calls, sample } = heldSampler()
    const client = await started.connect({ sample })
    const result = client.submit({})
    await until(() => calls.length === 1)
    await started.service.cancel(client.keyOf({}))
    expect(await result).toMatchObject({ status: 'failed', stopReason: 'cancelled', error: { code: 'ROLLOUT_CANCELLED', retryable: true } })
  })

  test('may submit thousands at once: all queue, as many run as may, each gets one result', async () => {
    let running = 0
    let most = 0
    await using started = await startChannel(model, { concurrency: 8 })
    const client = await started.connect({
      sample: async () => {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setImmediate(resolve))
        running--
        return sampled
      },
    })
    const results = await Promise.all(Array.from({ length: 2_000 }, (_, sample) => client.submit({ sample })))
    expect(results.filter(({ status }) => status === 'done').length).toBe(2_000)
    expect(new Set(results.map(({ key }) => key)).size).toBe(2_000)
    expect(most).toBeLessThanOrEqual(8)
    expect(started.engine.sampledTokens()).toBe(6_000)
  })

  test('has its validation rollouts scored 0 with their rows where they failed, and its training ones without rows', async () => {
    const score = {
      name: 'broken',
      score: async () => {
        throw new Error('no answer')
      },
      close: async () => {},
    }
    await using started = await startChannel(model, { score })
    const client = await started.connect()
    const [train, val] = await Promise.all([client.submit({}), client.submit({ partition: 'val' })])
    expect(train).toMatchObject({ status: 'failed', rows: [], omitted: { 'failed-episode': 3 }, error: { code: 'REWARD_FAILED' } })
    expect(val).toMatchObject({ status: 'failed', rows: [{ length: 6 }], error: { code: 'REWARD_FAILED' } })
  })

  test('gets rows with the reward of their agent, and in an evaluation with that of the rollout', async () => {
    const score: Reward = { name: 'both', score: async () => ({ reward: 1, scores: {}, agents: { agent: 0 } }), close: async () => {} }
    await using started = await startChannel(model, { score, ownReward: 0.25 })
    const client = await started.connect()
    const [train, val] = await Promise.all([client.submit({}), client.submit({ partition: 'val' })])
    expect(train).toMatchObject({ status: 'done', reward: 1, rows: [{ reward: 0.75 }] })
    expect(val).toMatchObject({ status: 'done', reward: 1, rows: [{ reward: 1 }] })
  })

  test('that scores itself gets rows without a reward', async () => {
    await using started = await startChannel(model, { score: null, reward: 'native' })
    const client = await started.connect()
    expect(client.welcome.settings.reward).toBe('native')
    expect(await client.submit({})).toMatchObject({ status: 'done', reward: null, rows: [{ reward: null }] })
  })

  test('has its deadline kept from the start of the rollout, not while it is queued', async () => {
    await using started = await startChannel(model, { concurrency: 1 })
    const { calls, release, sample } = heldSampler()
    const client = await started.connect({ sample: (call) => (call.key.endsWith('/1') ? sampled : sample(call)) })
    const first = client.submit({ sample: 0, deadlineMs: 60_000 })
    const second = client.submit({ sample: 1, deadlineMs: 3_000 })
    await until(() => calls.length === 1)
    await new Promise((resolve) => setTimeout(resolve, 3_500))
    expect(client.heard.filter(({ type }) => type === 'started').length).toBe(1)
    release(sampled)
    expect((await second).status).toBe('done')
    expect((await first).status).toBe('done')
    const late = await started.connect({ hello: { worker: 'late' }, sample: () => 'never' })
    expect(await late.submit({ sample: 2, deadlineMs: 50 })).toMatchObject({ status: 'failed', stopReason: 'time-limit', rows: [] })
  })
})

describe('the answers of rows', () => {
  test('are there for the reward function while the row is under way, and in no request', async () => {
    await using started = await startChannel(model)
    const { calls, release, sample } = heldSampler()
    const client = await started.connect({ sample })
    const secret = 'the hidden answer'
    const result = client.submit({ uid: 'a', row: { rewardModel: { ground_truth: secret } } })
    await until(() => calls.length === 1)
    expect(started.answers.answerKey('a').groundTruth).toBe(secret)
    const other = await client.submit({ uid: 'a', sample: 1, row: { rewardModel: { ground_truth: 'another' } } })
    expect(other).toMatchObject({ status: 'failed', error: { code: 'ROLLOUT_INVALID' } })
    expect(JSON.stringify(started.store.rollout(client.keyOf({ uid: 'a' })))).not.toContain(secret)
    release(sampled)
    await result
    expect(started.answers.has('a')).toBe(false)
    expect(started.answers.answerKey('a').groundTruth).toBe(null)
  })
})

describe('a model whose files arrive with the first trainer client', () => {
  test('is kept under its hash, checked, and not asked for again', async () => {
    const filesDirectory = await mkdtemp(join(tmpdir(), 'channel-files-'))
    const names = await readdir(model.directory)
    const files = new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(model.directory, name))] as const)))
    const tokenizerHash = filesHash(files)
    const setting = { directory: null, filesDirectory }
    {
      await using started = await startChannel(model, setting)
      expect(started.engine.health?.()).toMatchObject({ ready: false })
      expect(() => started.engine.chat()).toThrow(expect.objectContaining({ code: 'POLICY_UNAVAILABLE', retryable: true }))
      const wrong = started.connect({ files: new Map([...files].slice(1)), hello: { tokenizerHash } })
      await expect(wrong).rejects.toMatchObject({ code: 'MODEL_MISMATCH' })
      const client = await started.connect({ files, hello: { tokenizerHash } })
      expect(client.welcome.needFiles).toBe(true)
      expect(started.engine.health?.()).toMatchObject({ ready: true })
      expect((await client.submit({})).status).toBe('done')
      expect(await readdir(filesDirectory)).toEqual([tokenizerHash])
      const other = await started.connect({ hello: { tokenizerHash, worker: 'other' } })
      expect(other.welcome.needFiles).toBe(false)
    }
    await using started = await startChannel(model, setting)
    expect((await started.connect({ hello: { tokenizerHash } })).welcome.needFiles).toBe(false)
    await rm(filesDirectory, { recursive: true })
  })
})
