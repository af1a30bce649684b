import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cispo, type TrainingSample, type UpdateRequest, updateWithLoss } from '@aworld-train/core'
import { createVocabularyTokenizer, initModel } from '@aworld-train/engines/local'
import { parseLocalConfig } from '@aworld-train/training'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { localPolicy } from './local-policy.ts'
import { openPolicies } from './open-policies.ts'
import type { Policy } from './policy.ts'

const names = ['lead', 'reader'] as const
const rateFactors = { lead: 1, reader: 0.5 }
const { signal } = new AbortController()
let folder: string

/** Two models of other weights and other shapes. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'aworld-train-set-'))
  const tokenizer = createVocabularyTokenizer({ specialTokens: ['<|im_start|>', '<|im_end|>'], pieces: ['iron', 'tin'] })
  for (const [index, name] of names.entries()) {
    const shape = { hiddenSize: 16 + 8 * index, layers: 1 + index, heads: 2, kvHeads: 1, headDim: 8, intermediateSize: 20 }
    const rest = { ropeTheta: 10_000, rmsNormEps: 1e-6, tieWordEmbeddings: true, qkNorm: true, contextLength: 64 }
    await initModel(join(folder, name), { config: { ...shape, ...rest }, tokenizer, chatTemplate: '{{ messages }}', seed: 1 + index })
  }
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The policies of these names as one; a single one stands alone. */
async function open(chosen: readonly (typeof names)[number][] = names, threads = 2, frozen?: string): Promise<Policy> {
  const { config } = parseLocalConfig({ engine: { threads, simd: 'plain' }, concurrency: 2 })
  const planned = chosen.map((name, index) => ({
    name: chosen.length === 1 ? null : name,
    trainable: name !== frozen,
    rateFactor: rateFactors[name],
    chosen: localPolicy.choose(
      config,
      {},
      null,
      chosen.length === 1 ? undefined : { name, index, count: chosen.length, trainable: name !== frozen },
    ),
  }))
  const models = chosen.map((name) => join(folder, name))
  const policy = await openPolicies(planned as [(typeof planned)[number], ...typeof planned], models, signal)
  onTestFinished(() => policy.close())
  return policy
}

function sampleOf(policy: string, tokens: readonly number[], change: Partial<TrainingSample> = {}): TrainingSample {
  return {
    version: 2,
    tokenIds: Int32Array.from(tokens),
    lossMask: Uint8Array.from(tokens, (_, index) => (index === 0 ? 0 : 1)),
    rolloutLogprobs: new Float32Array(tokens.length).fill(-5.5),
    weightVersions: [{ fromToken: 0, version: 0 }],
    reward: 1,
    advantage: tokens.length % 2 === 0 ? 1 : -0.5,
    group: 'g',
    agent: policy,
    trajectory: policy,
    policy,
    provenance: { rollout: 'r', attempt: 0, taskId: 't', sample: 0, turns: [0] },
    ...change,
  }
}

const update = (samples: readonly TrainingSample[], learningRate = 0.01): UpdateRequest => ({
  samples,
  loss: { kind: 'ppo-clip', clipLow: 0.2, clipHigh: 0.28, klCoefficient: 0, entropyCoefficient: 0.01, aggregation: 'token-mean' },
  optimizer: { learningRate, betas: [0.9, 0.98], epsilon: 1e-8, weightDecay: 0.01, maxGradNorm: 1 },
})

/** Rows of both policies in turn, of different lengths. */
const mixed = [
  sampleOf('reader', [5, 6, 7, 8, 9]),
  sampleOf('lead', [7, 3, 9, 4]),
  sampleOf('lead', [1, 2, 3]),
  sampleOf('reader', [4, 4, 8, 120, 5, 6]),
  sampleOf('lead', [9, 8, 7, 6, 5, 4, 3, 2]),
]

let saves = 0
/** The checkpoint of what the learner has. */
async function save({ learner }: Policy): Promise<string> {
  const directory = join(folder, `save-${saves++}`)
  await learner.save(directory)
  return directory
}

const hashesOf = (directory: string) =>
  ['model.safetensors', 'optimizer.safetensors'].map((file) =>
    createHash('sha256')
      .update(readFileSync(join(directory, file)))
      .digest('hex'),
  )

/** Weights and optimiser of each policy of a checkpoint. */
const hashes = (directory: string) => Object.fromEntries(names.map((name) => [name, hashesOf(join(directory, name))]))

it.each([1, 2, 3])('a policy among others gets the bits that it gets alone, with %d threads', async (threads) => {
  const together = await open(names, threads)
  for (let step = 0; step < 3; step++) await together.learner.update(update(mixed))
  const found = hashes(await save(together))
  expect(found['lead']).not.toEqual(found['reader'])
  for (const name of names) {
    const alone = await open([name], threads)
    const own = mixed.filter(({ policy }) => policy === name)
    for (let step = 0; step < 3; step++) await alone.learner.update(update(own, 0.01 * rateFactors[name]))
    expect(found[name], name).toEqual(hashesOf(await save(alone)))
  }
})

it('a policy among others gets the bits that it gets alone by a loss of its own, which sees its rows alone', async () => {
  const byLoss = (samples: readonly TrainingSample[], rate: number) => ({ samples, loss: cispo(), optimizer: update([], rate).optimizer })
  const together = await open()
  const metrics = await updateWithLoss(together.learner, byLoss(mixed, 0.01))
  const found = hashes(await save(together))
  let loss = 0
  for (const name of names) {
    const alone = await open([name])
    const own = mixed.filter(({ policy }) => policy === name)
    const each = await updateWithLoss(alone.learner, byLoss(own, 0.01 * rateFactors[name]))
    expect(found[name], name).toEqual(hashesOf(await save(alone)))
    loss += (each.loss * each.trainedTokens) / metrics.trainedTokens
  }
  expect(metrics.loss).toBeCloseTo(loss, 6)
})

it('names the policies in their metrics as one: means by tokens, and logprobs of every sample', async () => {
  const together = await open()
  const own = await Promise.all(
    names.map(async (name) => await (await open([name])).learner.update(update(mixed.filter(({ policy }) => policy === name)))),
  )
  const metrics = await together.learner.update(update(mixed))
  const [lead, reader] = own as [(typeof own)[number], (typeof own)[number]]
  expect(metrics.trainedTokens).toBe(lead.trainedTokens + reader.trainedTokens)
  const mean = (lead.loss * lead.trainedTokens + reader.loss * reader.trainedTokens) / metrics.trainedTokens
  expect(metrics.loss).toBeCloseTo(mean, 12)
  expect(metrics.gradNorm).toBeCloseTo((lead.gradNorm! + reader.gradNorm!) / 2, 12)
  expect(metrics.logprobs).toEqual([reader.logprobs![0], lead.logprobs![0], lead.logprobs![1], reader.logprobs![1], lead.logprobs![2]])
})

const flip = (file: string) => {
  const bytes = readFileSync(file)
  bytes[bytes.length - 1]! ^= 1
  writeFileSync(file, bytes)
}

it.each<{ what: string; damage: (checkpoint: string) => void; says: string[] }>([
  {
    what: 'without a policy',
    damage: (checkpoint) => rmSync(join(checkpoint, 'reader'), { recursive: true }),
    says: ['lacks the folder of policy "reader"'],
  },
  {
    what: 'of other policies',
    damage: (checkpoint) => cpSync(join(checkpoint, 'lead'), join(checkpoint, 'critic'), { recursive: true }),
    says: ['has the folder "critic"'],
  },
  {
    what: 'with damaged weights of the first',
    damage: (checkpoint) => flip(join(checkpoint, 'lead', 'model.safetensors')),
    says: ['Policy "lead": ', join('lead', 'model.safetensors')],
  },
  {
    what: 'with a damaged optimiser of the second',
    damage: (checkpoint) => flip(join(checkpoint, 'reader', 'optimizer.safetensors')),
    says: ['Policy "reader": ', join('reader', 'optimizer.safetensors')],
  },
  {
    what: 'with the model of another shape in the second',
    damage: (checkpoint) => cpSync(join(checkpoint, 'lead'), join(checkpoint, 'reader'), { recursive: true }),
    says: ['Policy "reader": ', join('reader', 'model.safetensors')],
  },
  {
    what: 'that is not there',
    damage: (checkpoint) => rmSync(checkpoint, { recursive: true }),
    says: ['lacks the folder of policy "lead"'],
  },
])('a checkpoint $what changes no policy', async ({ damage, says }) => {
  const set = await open()
  await set.learner.update(update(mixed))
  const checkpoint = await save(set)
  damage(checkpoint)
  await set.learner.update(update(mixed))
  const before = hashes(await save(set))
  const error = await set.learner.load(checkpoint).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'CHECKPOINT_CORRUPT' })
  for (const text of [checkpoint, ...says]) expect(String(error)).toContain(text)
  expect(hashes(await save(set))).toEqual(before)
  // The policies take other checkpoints all the same.
  await set.learner.load(await save(set))
  await set.learner.publish()
  expect(hashes(await save(set))).toEqual(before)
})

it('an update that fails for one policy alone changes no policy and is told with its name', async () => {
  const set = await open()
  const before = hashes(await save(set))
  const bad = sampleOf('reader', [3, 4, 5], { advantage: Number.NaN })
  const failed = set.learner.update(update([bad]))
  await expect(failed).rejects.toMatchObject({ code: 'TRAINER_NOT_FINITE', message: expect.stringContaining('Policy "reader": ') })
  expect(hashes(await save(set))).toEqual(before)
  await set.learner.publish()
})

it('what one policy refuses changes no policy, and nothing has to be loaded after it', async () => {
  const set = await open()
  const before = hashes(await save(set))
  const refused = set.learner.update(update([...mixed, sampleOf('reader', [3, 4, 99_999])]))
  await expect(refused).rejects.toMatchObject({ code: 'TRAINER_SAMPLE_INVALID', message: expect.stringContaining('Policy "reader": ') })
  expect(hashes(await save(set))).toEqual(before)
  await set.learner.update(update(mixed))
  await set.learner.publish()
})

it('rows without a token to train change nothing of their policy, beside those of another', async () => {
  const set = await open()
  const before = hashes(await save(set))
  const rows = mixed.map((sample) => (sample.policy === 'lead' ? { ...sample, lossMask: new Uint8Array(sample.lossMask.length) } : sample))
  const { logprobs } = await set.learner.update(update(rows))
  expect(logprobs!.map((row) => row.length)).toEqual([4, 0, 0, 5, 0])
  const after = hashes(await save(set))
  expect(after['lead']).toEqual(before['lead'])
  expect(after['reader']).not.toEqual(before['reader'])
})

it('takes over what saveModel wrote, with the policy that is not trained', async () => {
  const set = await open(names, 2, 'lead')
  const directory = join(folder, 'saved')
  await set.saveModel(directory)
  expect(readdirSync(directory).toSorted()).toEqual(['lead', 'reader'])
  await set.learner.load(directory)
})

it('nothing is published or saved after an update that one policy made and another did not', async () => {
  const set = await open()
  await set.learner.update(update(mixed))
  const version = await set.learner.publish()
  const checkpoint = await save(set)
  const error = { code: 'TRAINER_NOT_FINITE', message: expect.stringContaining('Policy "reader": ') }
  const bad = sampleOf('reader', [3, 4, 5], { advantage: Number.NaN })
  await expect(set.learner.update(update([...mixed, bad]))).rejects.toMatchObject(error)
  await expect(set.learner.publish()).rejects.toMatchObject(error)
  await expect(set.learner.update(update(mixed))).rejects.toMatchObject(error)
  await expect(save(set)).rejects.toMatchObject(error)
  await expect(set.saveModel(join(folder, 'half'))).rejects.toMatchObject(error)
  expect([...set.members!.values()].map(({ engine }) => engine.weightVersion())).toEqual([version, version])
  await set.learner.load(checkpoint)
  expect(await set.learner.publish()).toBeGreaterThan(version)
  expect(hashes(await save(set))).toEqual(hashes(checkpoint))
})

it('a policy without a sample keeps its weights and its optimiser, and has the version of the others, also after a resume', async () => {
  const versions = (set: Policy) => [...set.members!.values()].map(({ engine }) => engine.weightVersion())
  const set = await open()
  await set.learner.update(update(mixed))
  await set.learner.publish()
  const checkpoint = await save(set)
  const onlyLead = mixed.filter(({ policy }) => policy === 'lead')
  await set.learner.update(update(onlyLead))
  const version = await set.learner.publish()
  expect(versions(set)).toEqual([version, version])
  expect(set.engine.weightVersion()).toBe(version)
  const after = hashes(await save(set))
  expect(after['reader']).toEqual(hashes(checkpoint)['reader'])
  expect(after['lead']).not.toEqual(hashes(checkpoint)['lead'])

  const resumed = await open()
  await resumed.learner.load(checkpoint)
  await resumed.learner.update(update(onlyLead))
  expect(await resumed.learner.publish()).toBe(version)
  expect(versions(resumed)).toEqual([version, version])
  expect(hashes(await save(resumed))).toEqual(after)
})

it('refuses rows of a policy that is not there or not trained, and logprobs of rows without policies', async () => {
  const set = await open(names, 2, 'lead')
  const error = (text: string) => ({ code: 'CONFIG_INVALID', message: expect.stringContaining(text) })
  const readers = mixed.filter(({ policy }) => policy === 'reader')
  const other = set.learner.update(update([...readers, sampleOf('critic', [1, 2, 3])]))
  await expect(other).rejects.toMatchObject(error('"critic", which is not among "reader"'))
  await expect(set.learner.update(update(mixed))).rejects.toMatchObject(error('"lead", which is not among "reader"'))
  const rows = mixed.map(({ tokenIds }) => tokenIds)
  await expect(set.learner.logprobs(rows, 1)).rejects.toMatchObject(error('needs the policy of each row'))
  const policies = mixed.map(({ policy }) => policy)
  expect(await set.learner.logprobs(rows, 1, policies)).toHaveLength(mixed.length)
  const unknown = set.learner.logprobs(rows, 1, policies.with(0, 'critic'))
  await expect(unknown).rejects.toMatchObject(error('"critic", which is not among "lead", "reader"'))
  await set.learner.update(update(readers))
  expect(readdirSync(await save(set))).toEqual(['reader'])
})
