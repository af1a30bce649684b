import { cp, mkdir, readdir, readFile, truncate, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TrainError, type UpdateRequest } from '@aworld-train/core'
import { describe, expect, it } from 'vitest'
import { createLocalEngine } from '../local-engine.ts'
import { makeTinyFolder, never, request, sampleOf, startTinyEngine } from '../testing/tiny-model.ts'
import { readSafetensors } from './safetensors.ts'

const update: UpdateRequest = {
  samples: [sampleOf([1, 2, 3, 4, 5]), sampleOf([256, 9, 8, 257])],
  loss: { kind: 'sft', aggregation: 'token-mean' },
  optimizer: { learningRate: 0.01, betas: [0.9, 0.95], epsilon: 1e-8, weightDecay: 0.01, maxGradNorm: 1 },
}
const row = Int32Array.of(256, 1, 2, 3, 4, 5, 6)

async function contents(directory: string): Promise<Record<string, string>> {
  const names = (await readdir(directory)).sort()
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, (await readFile(join(directory, name))).toString('hex')])))
}

const errorOf = async (promise: Promise<unknown>): Promise<TrainError> => {
  const error: unknown = await promise.then(
    () => expect.fail('it was accepted'),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(TrainError)
  return error as TrainError
}

describe('a checkpoint', () => {
  it('continues training with the same bits, in another process or the same', async () => {
    await using local = await startTinyEngine()
    const { learner } = local
    const saved = local.folder.path('checkpoint')
    for (let i = 0; i < 3; i++) await learner.update(update)
    await learner.save(saved)
    for (let i = 0; i < 3; i++) await learner.update(update)
    const straight = (await learner.logprobs([row], 1))[0]!

    const other = await createLocalEngine({ model: local.folder.directory, threads: 1, simd: 'plain' })
    await other.learner.load(saved)
    for (let i = 0; i < 3; i++) await other.learner.update(update)
    expect((await other.learner.logprobs([row], 1))[0]).toEqual(straight)
    await other.close()

    await learner.load(saved)
    for (let i = 0; i < 3; i++) await learner.update(update)
    expect((await learner.logprobs([row], 1))[0]).toEqual(straight)
  })

  it('is a model folder: an engine that starts from it samples what was saved', async () => {
    await using local = await startTinyEngine()
    await local.learner.update(update)
    await local.learner.publish()
    const saved = local.folder.path('nested/checkpoint')
    await local.learner.save(saved)
    const expected = await local.engine.generate(request(), never)
    const other = await createLocalEngine({ model: saved, threads: 1, simd: 'plain' })
    const { tokenIds, logprobs } = await other.engine.generate(request(), never)
    expect({ tokenIds, logprobs }).toEqual({ tokenIds: expected.tokenIds, logprobs: expected.logprobs })
    expect(other.engine.weightVersion()).toBe(0)
    expect(other.engine.model).toMatchObject({ name: 'checkpoint', stopTokenIds: [257], vocabularySize: 272, contextLength: 96 })
    await other.close()
  })

  it('has the same bytes for the same state, and leaves nothing else behind when it replaces an older one', async () => {
    await using local = await startTinyEngine()
    const { learner, folder } = local
    await learner.save(folder.path('a'))
    await learner.save(folder.path('b'))
    expect(await contents(folder.path('b'))).toEqual(await contents(folder.path('a')))
    const before = await contents(folder.path('a'))
    await learner.update(update)
    await learner.save(folder.path('a'))
    expect(Object.keys(await contents(folder.path('a')))).toEqual(Object.keys(before))
    expect(await contents(folder.path('a'))).not.toEqual(before)
    expect((await readdir(folder.path('.'))).sort()).toEqual(['a', 'b', 'model'])
  })

  it('that cannot be written leaves the older one and no temporary folder', async () => {
    await using local = await startTinyEngine()
    const { learner, folder } = local
    await learner.save(folder.path('a'))
    const before = await contents(folder.path('a'))
    await unlink(join(folder.directory, 'config.json'))
    await mkdir(join(folder.directory, 'config.json'))
    await expect(learner.save(folder.path('a'))).rejects.toThrow()
    expect(await contents(folder.path('a'))).toEqual(before)
    expect((await readdir(folder.path('.'))).sort()).toEqual(['a', 'model'])
    await writeFile(folder.path('file'), '')
    await expect(learner.save(folder.path('file/below'))).rejects.toThrow()
  })

  it('numbers the next version so that weights keep theirs and no version comes twice', async () => {
    await using local = await startTinyEngine()
    const { learner, engine, folder } = local
    for (let version = 1; version <= 3; version++) {
      await learner.update(update)
      expect(await learner.publish()).toBe(version)
    }
    await learner.save(folder.path('published'))
    await learner.update(update)
    await learner.save(folder.path('unpublished'))
    for (const [name, version] of [
      ['published', 3],
      ['unpublished', 4],
    ] as const) {
      const other = await createLocalEngine({ model: folder.directory, threads: 1, simd: 'plain' })
      await other.learner.load(folder.path(name))
      expect(other.engine.weightVersion()).toBe(0)
      expect(await other.learner.publish()).toBe(version)
      await other.learner.load(folder.path(name))
      expect(await other.learner.publish()).toBe(version + 1)
      await other.close()
    }
    const repeated = await createLocalEngine({ model: folder.directory, threads: 1, simd: 'plain' })
    await repeated.learner.load(folder.path('published'))
    await repeated.learner.update(update)
    await repeated.learner.update(update)
    expect(await repeated.learner.publish()).toBe(5)
    await repeated.close()
    await learner.load(folder.path('published'))
    expect(await learner.publish()).toBe(4)
    expect(engine.weightVersion()).toBe(4)
  })

  it('saved without the optimiser is a smaller folder that loads with a fresh one', async () => {
    await using local = await startTinyEngine()
    await local.learner.update(update)
    const exported = local.folder.path('exported')
    await local.saveModel(exported)
    expect(await readdir(exported)).not.toContain('optimizer.safetensors')
    const expected = (await local.learner.logprobs([row], 1))[0]
    await local.learner.update(update)
    await local.learner.load(exported)
    expect((await local.learner.logprobs([row], 1))[0]).toEqual(expected)
  })
})

describe('a damaged checkpoint', () => {
  it('is refused with the file and the reason, and the weights stay as they were', async () => {
    await using local = await startTinyEngine()
    const { learner, folder } = local
    const good = folder.path('good')
    await learner.save(good)
    await learner.update(update)
    const before = (await learner.logprobs([row], 1))[0]!
    const names = Object.keys(await contents(good))
    expect(names).toContain('optimizer.safetensors')
    const damages: [string, (path: string) => Promise<void>, string | RegExp][] = [
      ['cut off', (path) => truncate(path, 40), /cannot be used/],
      ['empty', (path) => truncate(path, 0), /cannot be used/],
      ['removed', (path) => unlink(path), /cannot be used/],
      [
        'flipped',
        async (path) => {
          const bytes = await readFile(path)
          bytes[Math.floor(bytes.length / 2)]! ^= 1
          await writeFile(path, bytes)
        },
        /checksum|JSON|missing|bytes/,
      ],
    ]
    for (const name of names) {
      for (const [what, damage, reason] of damages) {
        // Without checkpoint.json the folder is a plain model, which can be loaded.
        if (name === 'checkpoint.json' && what !== 'cut off' && what !== 'empty') continue
        const bad = folder.path('bad')
        await cp(good, bad, { recursive: true, force: true })
        await damage(join(bad, name))
        const error = await errorOf(learner.load(bad))
        expect([name, what, error.code]).toEqual([name, what, 'CHECKPOINT_CORRUPT'])
        expect(error.message).toContain(join(bad, name))
        expect(error.message).toMatch(reason)
      }
    }
    expect((await learner.logprobs([row], 1))[0]).toEqual(before)
  })

  it('of another version, another shape, or none at all is named', async () => {
    await using local = await startTinyEngine()
    const { learner, folder } = local
    await learner.save(folder.path('newer'))
    const meta = folder.path('newer/checkpoint.json')
    await writeFile(meta, (await readFile(meta, 'utf8')).replace('"version": 1', '"version": 2'))
    expect((await errorOf(learner.load(folder.path('newer')))).message).toContain('version 2')
    await using wider = await makeTinyFolder({ hiddenSize: 32 })
    const error = await errorOf(learner.load(wider.directory))
    expect(error.code).toBe('CHECKPOINT_CORRUPT')
    expect(error.message).toContain('[272,32] where config.json asks for [272,24]')
    expect((await errorOf(learner.load(folder.path('absent')))).code).toBe('CHECKPOINT_CORRUPT')
  })
})

describe('an engine', () => {
  it('starts from weights in shards', async () => {
    await using folder = await makeTinyFolder()
    const whole = await createLocalEngine({ model: folder.directory, threads: 1, simd: 'plain' })
    const expected = (await whole.learner.logprobs([row], 1))[0]
    await whole.close()
    const { tensors } = await readSafetensors(join(folder.directory, 'model.safetensors'))
    const { writeSafetensors } = await import('./safetensors.ts')
    const entries = [...tensors]
    const shards = { 'a.safetensors': entries.slice(0, 7), 'b.safetensors': entries.slice(7) }
    const map: Record<string, string> = {}
    for (const [name, part] of Object.entries(shards)) {
      await writeSafetensors(join(folder.directory, name), part)
      for (const [tensor] of part) map[tensor] = name
    }
    await unlink(join(folder.directory, 'model.safetensors'))
    await writeFile(join(folder.directory, 'model.safetensors.index.json'), JSON.stringify({ weight_map: map }))
    const sharded = await createLocalEngine({ model: folder.directory, threads: 1, simd: 'plain' })
    expect((await sharded.learner.logprobs([row], 1))[0]).toEqual(expected)
    await sharded.close()
  })

  it('does not start from a folder it cannot use, and says why', async () => {
    await using folder = await makeTinyFolder()
    const start = (options: object = {}): Promise<TrainError> => errorOf(createLocalEngine({ model: folder.directory, ...options }))
    expect((await start({ model: folder.path('absent') })).message).toContain('absent/config.json cannot be read')
    expect((await start({ threads: 0 })).message).toContain('threads is 0')
    expect((await start({ maxRows: 1.5 })).message).toContain('maxRows is 1.5')
    await truncate(join(folder.directory, 'model.safetensors'), 5_000)
    const cut = await start()
    expect(cut.code).toBe('CHECKPOINT_CORRUPT')
    expect(cut.message).toContain('model.safetensors cannot be used: it is cut off')
    await unlink(join(folder.directory, 'model.safetensors'))
    expect((await start()).message).toContain('it does not exist')
    await writeFile(join(folder.directory, 'tokenizer.json'), '{"model":{"type":"Unigram","vocab":[["a",0]]}}')
    expect((await start()).message).toContain('tokenizer.json has no vocabulary by token')
    await writeFile(join(folder.directory, 'tokenizer.json'), '{')
    expect((await start()).message).toContain('tokenizer.json is not valid JSON')
  })
})
