// The main example over SkyRL's open server, LoRA of rank 32 from the warm-up checkpoint: a whole training of some minutes.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lossWeights, type TrainingSample, type UpdateRequest } from '@aworld-train/core'
import { createTinkerEngine } from '@aworld-train/engines/tinker'
import { AgentTrainer } from 'aworld-train'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import definition from '../../../examples/periodic-table/aworld-train.config.ts'
import { repository } from '../../support/run-cli.ts'
import { probeDraw } from './probe-draw.ts'
import { type SkyrlServer, startSkyrl } from './start-skyrl.ts'

const example = join(repository, 'examples/periodic-table')
let folder: string
let server: SkyrlServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld train tinker-'))
  server = await startSkyrl(join(example, 'model'))
})

afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

it('the agent of the main example learns over a Tinker service, from at most 0.3 of the test tasks to at least 0.75', async () => {
  const lines = (await readFile(join(example, 'data/test.jsonl'), 'utf8')).trim().split('\n')
  const heldOut = lines.filter((_, index) => index % 4 === 0).map((line) => JSON.parse(line) as Record<string, unknown>)
  const config = definition.config as { readonly tinker: object }
  const trainer = await AgentTrainer.create({
    ...definition,
    baseDirectory: example,
    trainEngineName: 'tinker',
    validationDataset: undefined,
    testDataset: heldOut,
    steps: 20,
    runPath: folder,
    config: { ...config, evaluation: { greedy: false }, tinker: { ...config.tinker, url: server.url } },
  })
  const { before, after, curve, ledger, times } = await trainer.train()
  const gaps = curve.map(({ metrics }) => metrics['maxLogprobDifference'] ?? 0)
  console.log(
    `held out ${before?.reward.toFixed(3)} to ${after?.reward.toFixed(3)} in ${curve.length} steps, largest gap ${Math.max(...gaps)}`,
  )
  const phases = Object.entries(times.phasesMs).map(([phase, ms]) => `${phase} ${(ms / 1000).toFixed(0)} s`)
  console.log(`${(times.wallMs / 1000).toFixed(0)} s: ${phases.join(', ')}`)
  console.log(curve.map(({ reward }) => reward.toFixed(2)).join(' '))
  expect(before!.reward).toBeLessThanOrEqual(0.3)
  expect(after!.reward).toBeGreaterThanOrEqual(0.75)
  expect(Math.max(...gaps)).toBeLessThanOrEqual(1e-4)
  expect(ledger).toMatchObject({ unexplained: 0 })
}, 1_800_000)

it('a draw leaves the weights that are trained as they are', async () => {
  const tinker = await createTinkerEngine({ url: server.url, model: join(example, 'model'), name: 'model' })
  onTestFinished(() => tinker.close())
  const { byUpdate, byDraw } = await probeDraw(tinker)
  expect(byUpdate).toBeGreaterThan(1e-3)
  expect(byDraw).toBeLessThan(1e-6)
}, 1_800_000)

it('an update moves the weights alike by samples that are one row, by rows that stay apart, and by the derivatives of its loss', async () => {
  const [long, short] = [12, 7].map((length) => Int32Array.from({ length }, (_, at) => at + 5)) as [Int32Array, Int32Array]
  const loss = {
    kind: 'ppo-clip',
    clipLow: 0.2,
    clipHigh: 0.28,
    klCoefficient: 0,
    entropyCoefficient: 0,
    aggregation: 'token-mean',
  } as const
  /** Samples of which four are equal but for their advantages; rollout logprobs that differ by `apart` keep them rows of their own. */
  const toSamples = (now: readonly Float32Array[], apart: number) =>
    [1, 1, 0.5, -0.5, 0.5].map(
      (advantage, index): TrainingSample => ({
        version: 2,
        tokenIds: index < 4 ? long : short,
        lossMask: Uint8Array.from(index < 4 ? long : short, (_, at) => Number(at > 3)),
        rolloutLogprobs: now[index < 4 ? 0 : 1]!.map((value) => value + apart * index),
        weightVersions: [{ fromToken: 0, version: 0 }],
        reward: 1,
        advantage,
        group: 'group',
        agent: 'agent',
        trajectory: 'agent',
        policy: 'policy',
        provenance: { rollout: `${index}`, attempt: 0, taskId: 'task', sample: index, turns: [0] },
      }),
    )
  const train = async (toRequest: (now: readonly Float32Array[]) => Pick<UpdateRequest, 'samples' | 'loss'>) => {
    const { learner, close } = await createTinkerEngine({
      url: server.url,
      model: join(example, 'model'),
      name: 'model',
      lora: { rank: 8, seed: 1 },
    })
    const scored: Float32Array[][] = []
    const optimizer = { learningRate: 0.1, betas: [0.9, 0.95], epsilon: 1, weightDecay: 0, maxGradNorm: 0 } as const
    for (let update = 0; update < 3; update++) {
      scored.push(await learner.logprobs([long, short], 1))
      if (update < 2) await learner.update({ ...toRequest(scored.at(-1)!), optimizer })
    }
    await close()
    return scored
  }
  const merged = await train((now) => ({ samples: toSamples(now, 0), loss }))
  const apart = await train((now) => ({ samples: toSamples(now, 1e-6), loss }))
  const linear = await train((now) => {
    const samples = toSamples(now, 0)
    const weights = lossWeights(samples, loss.aggregation)
    const coefficients = samples.map(({ tokenIds, advantage }, index) =>
      new Float32Array(tokenIds.length).fill(-weights[index]! * advantage!),
    )
    return { samples, loss: { kind: 'linear', coefficients, entropyCoefficient: 0, aggregation: 'token-mean' } }
  })
  const distance = (a: readonly Float32Array[], b: readonly Float32Array[]) =>
    Math.max(...a.flatMap((row, index) => Array.from(row, (value, at) => Math.abs(value - b[index]![at]!))))
  const moved = distance(merged.at(0)!, merged.at(-1)!)
  expect(moved).toBeGreaterThan(0.05)
  for (const other of [apart, linear]) expect(distance(merged.at(-1)!, other.at(-1)!)).toBeLessThan(1e-3 * moved)
}, 1_800_000)
