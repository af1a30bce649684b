import { join } from 'node:path'
import { type TokenEngine, TrainError } from '@aworld-train/core'
import { describe, expect, it } from 'vitest'
import { readSafetensors, writeSafetensors } from '../files/safetensors.ts'
import { loadKernels } from '../kernels/load-kernels.ts'
import { createLocalEngine } from '../local-engine.ts'
import { createPool } from '../pool/pool.ts'
import { makeTinyFolder, never, request, sampleOf, startTinyEngine, tinyShape } from '../testing/tiny-model.ts'
import { Sampler } from './sampler.ts'

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'resolved',
    (error: unknown) => (error instanceof TrainError ? error.code : String(error)),
  )

describe('how a completion ends', () => {
  it('at a stop token, which it includes', async () => {
    await using local = await startTinyEngine({ maxRows: 32 })
    const results = await Promise.all(
      Array.from({ length: 300 }, (_, i) => local.engine.generate(request({ task: `s${i}`, maxTokens: 90, temperature: 1.5 }), never)),
    )
    const stopped = results.filter(({ finishReason }) => finishReason.unified === 'stop')
    expect(stopped.length).toBeGreaterThan(5)
    for (const { tokenIds, finishReason } of results) {
      const at = tokenIds.indexOf(257)
      expect(at).toBe(finishReason.raw === 'stop-token' ? tokenIds.length - 1 : -1)
    }
  })

  it('at a stop text, which may begin in one token and end in another, and nothing is drawn behind it', async () => {
    await using local = await startTinyEngine()
    const free = await local.engine.generate(request({ maxTokens: 40, temperature: 1.2 }), never)
    const text = Buffer.from(free.tokenIds.slice(0, 12).filter((id) => id < 128))
    const stop = text.subarray(2, 5).toString()
    const before = local.engine.sampledTokens()
    const pieces: number[] = []
    const call = request({ maxTokens: 40, temperature: 1.2, stop: ['never written', stop], onTokens: (ids) => pieces.push(...ids) })
    const cut = await local.engine.generate(call, never)
    expect(cut.finishReason).toEqual({ unified: 'stop', raw: 'stop-string' })
    expect(cut.tokenIds).toEqual(free.tokenIds.slice(0, cut.tokenIds.length))
    expect(cut.tokenIds.length).toBeLessThan(free.tokenIds.length)
    expect(local.engine.sampledTokens() - before).toBe(cut.tokenIds.length)
    expect(pieces).toEqual(Array.from(cut.tokenIds))
  })

  it('at the end of the context', async () => {
    await using local = await startTinyEngine()
    const prompt = Array.from({ length: 90 }, (_, i) => i)
    const result = await local.engine.generate(request({ prompt, maxTokens: 50, temperature: 0 }), never)
    expect(result.finishReason).toEqual({ unified: 'length', raw: 'context' })
    expect(result.tokenIds.length).toBe(6)
  })

  it('before it begins when the prompt cannot be sampled from', async () => {
    await using local = await startTinyEngine()
    const { engine } = local
    expect(await codeOf(engine.generate(request({ prompt: new Array(96).fill(1) }), never))).toBe('POLICY_CONTEXT_OVERFLOW')
    expect(await codeOf(engine.generate(request({ prompt: [] }), never))).toBe('GATEWAY_BAD_REQUEST')
    expect(await codeOf(engine.generate(request({ prompt: [3, 272] }), never))).toBe('GATEWAY_BAD_REQUEST')
    expect(await codeOf(engine.generate(request({ prompt: [-1] }), never))).toBe('GATEWAY_BAD_REQUEST')
    expect(await codeOf(engine.generate(request({ maxTokens: 0 }), never))).toBe('GATEWAY_BAD_REQUEST')
    expect(await codeOf(engine.generate(request({ temperature: Number.NaN }), never))).toBe('GATEWAY_BAD_REQUEST')
    expect(engine.sampledTokens()).toBe(0)
  })
})

describe('a row', () => {
  it('is free for the next call after an abort, whether it queued, ran or stood still', async () => {
    await using local = await startTinyEngine({ maxRows: 1, shape: { contextLength: 4096 } })
    const { engine, learner } = local
    const running = new AbortController()
    const queued = new AbortController()
    let drawn = 0
    const first = engine.generate(
      request({
        maxTokens: 4_000,
        temperature: 0,
        onTokens: (ids) => {
          drawn += ids.length
          queued.abort(new Error('queued'))
          running.abort(new Error('running'))
        },
      }),
      running.signal,
    )
    const second = engine.generate(request({ task: 'second' }), queued.signal)
    expect(await codeOf(second)).toBe('Error: queued')
    expect(await codeOf(first)).toBe('Error: running')
    expect(engine.sampledTokens()).toBe(drawn)

    const standing = new AbortController()
    const third = engine.generate(request({ task: 'third', maxTokens: 4_000, temperature: 0 }), standing.signal)
    const samples = Array.from({ length: 40 }, () => sampleOf(Array.from({ length: 60 }, (_, i) => i)))
    const optimizer = { learningRate: 0, betas: [0.9, 0.95] as const, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 }
    const update = learner.update({ samples, loss: { kind: 'sft', aggregation: 'token-mean' }, optimizer })
    standing.abort(new Error('standing'))
    expect(await codeOf(third)).toBe('Error: standing')
    await update
    expect((await engine.generate(request({ task: 'fourth', maxTokens: 3, temperature: 0 }), never)).tokenIds.length).toBe(3)
  })

  it('keeps the tokens of its rollout: the next call computes its suffix only', async () => {
    await using local = await startTinyEngine({ maxRows: 4 })
    const prompt = [9, 8, 7, 6, 5, 4, 3, 2, 1]
    const first = await local.engine.generate(request({ prompt, maxTokens: 12 }), never)
    expect(first.cachedTokens).toBe(0)
    const longer = [...prompt, ...first.tokenIds, 50, 51, 52]
    const second = await local.engine.generate(request({ prompt: longer, turn: 1 }), never)
    expect(second.cachedTokens).toBe(prompt.length + first.tokenIds.length - 1)
    await using fresh = await startTinyEngine({ maxRows: 4 })
    const computed = await fresh.engine.generate(request({ prompt: longer, turn: 1 }), never)
    expect(computed.cachedTokens).toBe(0)
    expect(second.tokenIds).toEqual(computed.tokenIds)
    expect(second.logprobs).toEqual(computed.logprobs)
  })

  it('lends its prefix to other rollouts', async () => {
    await using local = await startTinyEngine({ maxRows: 4 })
    const system = Array.from({ length: 21 }, (_, i) => 100 + i)
    await local.engine.generate(request({ task: 'a', prompt: [...system, 1, 2] }), never)
    const others = await Promise.all(
      [1, 2, 3].map((i) => local.engine.generate(request({ task: `b${i}`, prompt: [...system, 30 + i] }), never)),
    )
    for (const { cachedTokens } of others) expect(cachedTokens).toBe(system.length)
    await using fresh = await startTinyEngine({ maxRows: 4 })
    const computed = await fresh.engine.generate(request({ task: 'b2', prompt: [...system, 32] }), never)
    expect(others[1]!.logprobs).toEqual(computed.logprobs)
  })
})

describe('calls that begin at once with one prompt', () => {
  const prompt = Array.from({ length: 80 }, (_, i) => 100 + i)
  const group = Array.from({ length: 8 }, (_, i) => request({ task: `sample${i}`, prompt, maxTokens: 12 }))
  const computed = (results: readonly { readonly cachedTokens: number }[]) =>
    results.reduce((sum, { cachedTokens }) => sum + prompt.length - cachedTokens, 0)

  it.each([1, 2])('read it once, and sample what each would alone (%i threads)', async (threads) => {
    await using local = await startTinyEngine({ maxRows: 8, threads })
    const results = await Promise.all(group.map((call) => local.engine.generate(call, never)))
    expect(computed(results)).toBe(prompt.length + group.length - 1)
    for (const [index, call] of group.entries()) {
      await using fresh = await startTinyEngine({ maxRows: 1 })
      const { tokenIds, logprobs } = await fresh.engine.generate(call, never)
      expect(results[index]).toMatchObject({ tokenIds, logprobs })
    }
  })

  it('read it once where there are fewer rows than calls', async () => {
    await using local = await startTinyEngine({ maxRows: 3 })
    expect(computed(await Promise.all(group.map((call) => local.engine.generate(call, never))))).toBe(prompt.length + group.length - 1)
  })

  it('go on without the first where it is cancelled or fails', async () => {
    await using local = await startTinyEngine({ maxRows: 8 })
    const controller = new AbortController()
    const [, ...others] = group
    // With a stop text the worker waits for this thread after each token, so the call cannot end before it is given up.
    const first = request({ task: 'first', prompt, maxTokens: 12, stop: ['never written'] })
    const cancelled = local.engine.generate(first, controller.signal)
    const waiting = others.map((call) => local.engine.generate(call, never))
    controller.abort(new Error('enough'))
    await expect(cancelled).rejects.toThrow('enough')
    expect(computed(await Promise.all(waiting))).toBeLessThanOrEqual(2 * prompt.length + others.length)
    const thrown = local.engine.generate(
      {
        ...first,
        onTokens: () => {
          throw new Error('mine')
        },
      },
      never,
    )
    const after = others.map((call) => local.engine.generate(call, never))
    await expect(thrown).rejects.toThrow('mine')
    expect(await Promise.all(after)).toHaveLength(others.length)
  })

  it('sample the same where weights that are alike are published meanwhile', async () => {
    await using local = await startTinyEngine({ maxRows: 8 })
    const ask = () => Promise.all(group.map((call) => local.engine.generate(call, never)))
    const expected = await ask()
    for (let times = 0; times < 5; times++) {
      const [results] = await Promise.all([ask(), local.learner.publish()])
      for (const [index, { tokenIds, logprobs }] of expected.entries()) expect(results[index]).toMatchObject({ tokenIds, logprobs })
    }
  })

  it('read it once where the first is on another thread than the second', async () => {
    await using local = await startTinyEngine({ maxRows: 9, threads: 2, shape: { contextLength: 4096 } })
    const stop = new AbortController()
    // Threads take calls in turn. The first of the group thus goes to the thread that this call leaves free, and the second joins it.
    const busy = codeOf(local.engine.generate(request({ task: 'busy', maxTokens: 4_000, temperature: 0 }), stop.signal))
    const results = await Promise.all(group.map((call) => local.engine.generate(call, never)))
    expect(computed(results)).toBe(prompt.length + group.length - 1)
    stop.abort()
    await busy
  })

  it('read it again with weights that are published while they wait, and sample by those alone', async () => {
    await using local = await startTinyEngine({ maxRows: 8, shape: { contextLength: 4096 } })
    const long = Array.from({ length: 4000 }, (_, i) => i % 256)
    const ask = (engine: TokenEngine) =>
      Promise.all(group.map((_, i) => engine.generate(request({ task: `sample${i}`, prompt: long, maxTokens: 4 }), never)))
    const optimizer = { learningRate: 0.01, betas: [0.9, 0.95] as const, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 }
    await local.learner.update({ samples: [sampleOf([1, 2, 3])], loss: { kind: 'sft', aggregation: 'token-mean' }, optimizer })
    const [results] = await Promise.all([ask(local.engine), local.learner.publish()])
    await local.saveModel(local.folder.path('trained'))
    const trained = await createLocalEngine({ model: local.folder.path('trained'), threads: 2, simd: 'plain' })
    try {
      for (const [index, { tokenIds, logprobs }] of (await ask(trained.engine)).entries()) {
        expect(results[index]).toMatchObject({ tokenIds, logprobs, weightVersions: [{ fromToken: 0, version: 1 }] })
      }
    } finally {
      await trained.close()
    }
  })

  it('read a prompt once that leaves room for one token, and refuse each one that leaves none', async () => {
    await using local = await startTinyEngine({ maxRows: 8 })
    const longest = Array.from({ length: 95 }, (_, i) => 100 + i)
    const ask = (ids: number[]) => group.map((_, i) => local.engine.generate(request({ task: `sample${i}`, prompt: ids }), never))
    const refused = ask([...longest, 1]).map(codeOf)
    const results = await Promise.all(ask(longest))
    expect(results.reduce((sum, { cachedTokens }) => sum + longest.length - cachedTokens, 0)).toBe(longest.length + group.length - 1)
    for (const { tokenIds } of results) expect(tokenIds).toHaveLength(1)
    expect(new Set(await Promise.all(refused))).toEqual(new Set(['POLICY_CONTEXT_OVERFLOW']))
  })

  it('let a call with another prompt pass', async () => {
    await using local = await startTinyEngine({ maxRows: 2, threads: 1, shape: { contextLength: 4096 } })
    const long = Array.from({ length: 4000 }, (_, i) => i % 256)
    const order: string[] = []
    const ask = async (task: string, ids: number[], maxTokens: number) => {
      await local.engine.generate(request({ task, prompt: ids, maxTokens }), never)
      order.push(task)
    }
    await Promise.all([ask('leader', long, 16), ask('follower', long, 1), ask('other', [1, 2], 1)])
    expect(order.indexOf('other')).toBeLessThan(order.indexOf('follower'))
  })
})

describe('sampling beside training', () => {
  it('goes on around updates, in the order of calls, and leaves the bits of training alone', async () => {
    const optimizer = { learningRate: 0.01, betas: [0.9, 0.95] as const, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 }
    const samples = [sampleOf([1, 2, 3, 4, 5, 6]), sampleOf([256, 8, 9, 257])]
    const train = async (busy: boolean): Promise<Float32Array> => {
      await using local = await startTinyEngine({ shape: { contextLength: 512 } })
      const calls = busy
        ? Array.from({ length: 20 }, (_, i) => local.engine.generate(request({ task: `t${i}`, maxTokens: 400 }), never))
        : []
      for (let i = 0; i < 5; i++) await local.learner.update({ samples, loss: { kind: 'sft', aggregation: 'token-mean' }, optimizer })
      for (const { tokenIds, finishReason } of await Promise.all(calls))
        expect(tokenIds.length === 400 || finishReason.unified === 'stop').toBe(true)
      return (await local.learner.logprobs([Int32Array.of(1, 2, 3, 4, 5, 6)], 1))[0]!
    }
    expect(await train(true)).toEqual(await train(false))
  })

  it('leaves the main thread to others', async () => {
    await using local = await startTinyEngine({ shape: { contextLength: 1024 } })
    const calls = Promise.all(
      Array.from({ length: 32 }, (_, i) => local.engine.generate(request({ task: `t${i}`, maxTokens: 900 }), never)),
    )
    let turns = 0
    let running = true
    const spin = (): void => {
      turns++
      if (running) setImmediate(spin)
    }
    setImmediate(spin)
    await calls
    running = false
    expect(turns).toBeGreaterThan(100)
  })
})

describe('failures', () => {
  it('reject the calls of weights that are not numbers, and name the version', async () => {
    await using folder = await makeTinyFolder()
    const path = join(folder.directory, 'model.safetensors')
    const { tensors, metadata } = await readSafetensors(path)
    tensors.get('model.norm.weight')!.data[3] = Number.NaN
    await writeSafetensors(path, tensors, metadata)
    const local = await createLocalEngine({ model: folder.directory, threads: 1, simd: 'plain' })
    try {
      for (const temperature of [1, 0]) {
        const outcome = local.engine.generate(request({ temperature }), never)
        await expect(outcome).rejects.toThrow('version 0 give logits that are not finite')
        await expect(outcome).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
      }
      expect(local.engine.sampledTokens()).toBe(0)
    } finally {
      await local.close()
    }
  })

  it('of a worker end every call with POLICY_WORKER_DIED, now and later', async () => {
    const pool = await createPool({
      kernels: await loadKernels('plain'),
      layout: {
        model: { ...tinyShape, vocabularySize: 272 },
        threads: 2,
        shards: 1,
        microBatchTokens: 32,
        batchTokens: 96,
        batchRows: 4,
        sampling: { rows: 4, stepTokens: 8 },
      },
    })
    try {
      const sampler = new Sampler({ pool, stopTokenIds: [257], tokenBytes: [] })
      await sampler.exclusive(() => sampler.publish())
      const calls: Promise<string>[] = []
      await sampler.exclusive(async () => {
        for (let i = 0; i < 6; i++) calls.push(codeOf(sampler.generate(request({ task: `t${i}`, maxTokens: 80 }), never)))
        // The embedding of this id is far beyond the memory. It stands for any fault in a worker.
        const tokens = pool.layout.sampler.tokens / 4
        for (let row = 0; row < 4; row++) pool.views.i32[tokens + row * tinyShape.contextLength] = 33_554_432
      })
      expect(new Set(await Promise.all(calls))).toEqual(new Set(['POLICY_WORKER_DIED']))
      expect(await codeOf(sampler.generate(request(), never))).toBe('POLICY_WORKER_DIED')
      await sampler.close()
    } finally {
      await pool.close()
    }
  })

  it('of onTokens end the call with what was thrown', async () => {
    await using local = await startTinyEngine()
    const onTokens = (): void => {
      throw new Error('no room for tokens')
    }
    expect(await codeOf(local.engine.generate(request({ onTokens }), never))).toBe('Error: no room for tokens')
    expect((await local.engine.generate(request(), never)).tokenIds.length).toBeGreaterThan(0)
  })

  it('end calls in flight when the engine closes', async () => {
    await using local = await startTinyEngine({ maxRows: 2, shape: { contextLength: 4096 } })
    const calls = Array.from({ length: 5 }, (_, i) =>
      codeOf(local.engine.generate(request({ task: `t${i}`, maxTokens: 4_000, temperature: 0 }), never)),
    )
    await local.close()
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['POLICY_UNAVAILABLE']))
    expect(await codeOf(local.engine.generate(request(), never))).toBe('POLICY_UNAVAILABLE')
    expect(await codeOf(local.learner.publish())).toBe('POLICY_UNAVAILABLE')
  })
})
