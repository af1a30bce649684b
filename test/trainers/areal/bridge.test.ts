// The bridge's trainer on AReaL's own classes, with its own inference server, against a real rollout service.
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { arealEnvironment } from '../../support/python-environment.ts'
import { everySecondFails } from '../support/open-training.ts'
import { startBridgeService } from '../support/start-bridge-service.ts'
import { startTrainWorker, type TrainWorker } from '../support/train-worker.ts'

const model = fileURLToPath(new URL('../../../examples/periodic-table/model', import.meta.url))
let folder: string
let worker: TrainWorker
let trainings = 0

beforeAll(async () => {
  worker = startTrainWorker('areal', await arealEnvironment())
  folder = await mkdtemp(join(tmpdir(), 'aworld train areal-'))
}, 900_000)

afterAll(async () => {
  await worker?.close()
  await rm(folder, { recursive: true, force: true })
})

interface TrainedLine {
  readonly step: number
  readonly keys: readonly { readonly key: string; readonly maskTokens: number }[]
  readonly maxLogprobDifference: number | null
}

interface Training {
  train(incarnation: string, configuration?: Readonly<Record<string, unknown>>, fault?: string): ReturnType<TrainWorker['train']>
  ledger<Line>(incarnation: string, name: string): Promise<Line[]>
  metrics(): Promise<{ readonly step: number; readonly data: Readonly<Record<string, number>> }[]>
  [Symbol.asyncDispose](): Promise<void>
}

async function openTraining({
  content = (index: number) => `task ${index}`,
  order = null,
  passes = 1,
  maxResponseTokens = 160,
  ...setting
}: Readonly<Record<string, unknown>> & {
  readonly content?: (index: number) => string
  readonly order?: readonly string[] | null
  readonly passes?: number
  readonly maxResponseTokens?: number
} = {}): Promise<Training> {
  const path = await mkdtemp(join(folder, `training-${trainings++}-`))
  const serviceOptions = { path: join(path, 'run'), port: 0, token: 't', directory: model, turns: 2, rows: 'last', reward: 'length' }
  const service = await startBridgeService({ ...serviceOptions, ...setting })
  const writeTasks = async (file: string, count: number) => {
    const row = (index: number) => ({ prompt: [{ role: 'user', content: content(index) }], dataSource: 'toy', index })
    const lines = Array.from({ length: count }, (_, index) => ({
      id: `t${index}`,
      row: { ...row(index), rewardModel: null, extraInfo: {}, columns: {} },
    }))
    await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    return file
  }
  const tasks = { train: await writeTasks(join(path, 'train.jsonl'), 8), test: await writeTasks(join(path, 'test.jsonl'), 3) }
  const read = async <Line>(file: string) =>
    (await readFile(file, 'utf8').catch(() => ''))
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line)
  return {
    train: (incarnation, configuration = {}, fault) =>
      worker.train({
        fault,
        metrics: join(path, 'metrics.jsonl'),
        plan: {
          model,
          configuration: {
            total_train_steps: 2,
            train_dataset: { batch_size: 2, shuffle: order === null },
            gconfig: { n_samples: 4, max_new_tokens: maxResponseTokens },
            actor: { ppo_n_minibatches: 1, optimizer: { lr: 1e-3 } },
            rollout: { request_retries: 1 },
            ...configuration,
          },
          tasks,
          order,
          evaluation: { samples: 2, temperature: 1, before: false },
          limits: { maxPromptTokens: 200, maxResponseTokens },
          logprobTolerance: 1e-4,
          passes,
          checkpoints: join(path, 'checkpoints'),
          path: join(path, 'areal'),
        },
        environment: {
          AWORLD_TRAIN_CHANNEL: service.url,
          AWORLD_TRAIN_CHANNEL_TOKEN: 't',
          AWORLD_TRAIN_RUN: 'demo',
          AWORLD_TRAIN_INCARNATION: incarnation,
          AWORLD_TRAIN_RUN_PATH: path,
        },
      }),
    async ledger<Line>(incarnation: string, name: string) {
      const directory = join(path, 'ledger', incarnation)
      const files = (await readdir(directory).catch(() => [])).filter((file) => file.startsWith(`${name}-`))
      return (await Promise.all(files.map((file) => read<Line>(join(directory, file))))).flat()
    },
    metrics: () => read(join(path, 'metrics.jsonl')),
    [Symbol.asyncDispose]: () => service.close(),
  }
}

test('serves AReaL’s client as vLLM does, and leaves failed rollouts out of the mean', { timeout: 300_000 }, async () => {
  const cwd = fileURLToPath(new URL('../../../packages/trainers/python', import.meta.url))
  const { stderr } = await promisify(execFile)(
    await arealEnvironment(),
    ['-W', 'ignore', '-m', 'unittest', 'discover', '-s', 'tests/with_areal'],
    { cwd, env: { ...process.env, PYTHONPATH: '.:tests', PYTHONDONTWRITEBYTECODE: '1', TORCHDYNAMO_DISABLE: '1', OMP_NUM_THREADS: '1' } },
  )
  expect(stderr).toMatch(/Ran [1-9]\d* tests[\s\S]*OK/)
})

const total = (lines: readonly { readonly tokens: number }[]) => lines.reduce((sum, { tokens }) => sum + tokens, 0)

describe('with an inference server of its own', { timeout: 600_000 }, () => {
  test('trains what was sampled and nothing else, and a later start goes on from the checkpoint', async () => {
    await using training = await openTraining()
    expect(await training.train('first', { recover: { freq_steps: 1 }, evaluator: { freq_steps: 2 } })).toBeNull()
    const trained = await training.ledger<TrainedLine>('first', 'trained')
    expect(trained.map(({ step, keys }) => [step, keys.length])).toEqual([
      [1, 8],
      [2, 8],
    ])
    for (const { maxLogprobDifference } of trained) expect(maxLogprobDifference).toBeLessThan(1e-4)
    const sampled = await training.ledger<{ key: string; version: number; tokens: number }>('first', 'sampled')
    const ofTraining = sampled.filter(({ key }) => key.split('/')[2] === 'train')
    expect(trained.flatMap(({ keys }) => keys).reduce((sum, { maskTokens }) => sum + maskTokens, 0)).toBe(total(ofTraining))
    expect([...new Set(ofTraining.map(({ version }) => version))]).toEqual([0, 1])
    const metrics = await training.metrics()
    expect(metrics.map(({ step, data }) => [step, 'timing_s/checkpoint' in data, 'eval_reward' in data])).toEqual([
      [1, true, false],
      [2, true, true],
    ])
    expect(metrics[1]?.data['eval_failed']).toBe(0)

    expect(await training.train('second', { total_train_steps: 3 })).toBeNull()
    const [third, ...more] = await training.ledger<TrainedLine>('second', 'trained')
    expect(more).toEqual([])
    expect(third).toMatchObject({ step: 3 })
    expect(third?.maxLogprobDifference).toBeLessThan(1e-4)
  })

  test('a server that an earlier run has left samples with the weights of this one', async () => {
    await using training = await openTraining()
    expect(await training.train('reused', { total_train_steps: 1 }, 'server-reused')).toBeNull()
    const [first] = await training.ledger<TrainedLine>('reused', 'trained')
    expect(first?.maxLogprobDifference).toBeLessThan(1e-4)
  })

  test('several updates and passes a step, over weights of earlier steps, count each row once', async () => {
    await using training = await openTraining({ passes: 2 })
    const actor = { ppo_n_minibatches: 2, use_decoupled_loss: true, optimizer: { lr: 1e-3 } }
    const rollout = { max_head_offpolicyness: 1, max_concurrent_rollouts: 4 }
    expect(await training.train('stale', { actor, rollout, total_train_steps: 3 })).toBeNull()
    const keys = (await training.ledger<TrainedLine>('stale', 'trained')).flatMap((line) => line.keys.map(({ key }) => key))
    expect(keys).toHaveLength(24)
    expect(new Set(keys).size).toBe(24)
  })

  test('a failed rollout has no part in its group, and a batch of them ends the run', async () => {
    const order = ['t0', 't1', 't2', 't3', 't4', 't5']
    await using some = await openTraining({ content: everySecondFails, order })
    expect(await some.train('some', { total_train_steps: 3 })).toBeNull()
    expect((await some.ledger<TrainedLine>('some', 'trained')).map(({ keys }) => keys.length)).toEqual([4, 4, 4])
    for (const { data } of await some.metrics()) expect(data).toMatchObject({ 'rollouts/replaced': 8, 'ppo_actor/n_seqs': 8 })
    await using all = await openTraining({ content: () => 'This throws.' })
    expect(await all.train('all')).toMatchObject({ code: 'TRAINER_EMPTY_BATCH', message: expect.stringContaining('the agent threw') })
    await using late = await openTraining({ content: () => 'This hangs.', rolloutTimeoutMs: 300 })
    expect(await late.train('late')).toMatchObject({ code: 'TRAINER_EMPTY_BATCH' })
  })

  test('no response is longer than gconfig.max_new_tokens', async () => {
    await using training = await openTraining({ maxResponseTokens: 8 })
    expect(await training.train('short', { total_train_steps: 1 })).toBeNull()
    const [first] = await training.ledger<TrainedLine>('short', 'trained')
    expect(first?.keys).toHaveLength(8)
    for (const { maskTokens } of first!.keys) expect(maskTokens).toBeLessThanOrEqual(8)
  })
})

describe('what is broken is found', { timeout: 600_000 }, () => {
  test.each([
    ['env-mask-ignored', 'BATCH_MISMATCH', {}, 0],
    ['temperature-wrong', 'POLICY_LOGPROB_MISMATCH', {}, 0],
    ['packing-on', 'POLICY_LOGPROB_MISMATCH', {}, 0],
    ['not-pushed', 'POLICY_LOGPROB_MISMATCH', {}, 0],
    ['stale-engine', 'POLICY_LOGPROB_MISMATCH', {}, 1],
    ['logprobs-nan', 'RuntimeError', {}, 0],
    ['server-killed', 'POLICY_UNAVAILABLE', {}, 1],
    [undefined, 'CONFIG_INVALID', { gconfig: { n_samples: 4, top_p: 0.9 } }, 0],
    [undefined, 'CONFIG_INVALID', { total_train_step: 3 }, 0],
    [undefined, 'CONFIG_INVALID', { recover: { fileroot: 'elsewhere' } }, 0],
    [undefined, 'CONFIG_INVALID', { gconfig: { n_samples: 1 } }, 0],
    [undefined, 'CONFIG_INVALID', { actor: { ppo_n_minibatches: 9 } }, 0],
    [undefined, 'CONFIG_INVALID', { actor: { ppo_n_minibatches: 1, attn_impl: 'sdpa', mb_spec: { max_tokens_per_mb: 4096 } } }, 0],
  ])('%s: %s %j', async (fault, code, configuration, steps) => {
    await using training = await openTraining()
    expect(await training.train('broken', configuration, fault)).toMatchObject({ code })
    expect(await training.ledger<TrainedLine>('broken', 'trained')).toHaveLength(steps)
  })

  test('rows of which AReaL trains one only', async () => {
    await using training = await openTraining({ rows: 'all', asides: true })
    expect(await training.train('rows')).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('last or longest') })
  })
})
