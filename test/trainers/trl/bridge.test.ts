// @module-tag quick
// The bridge's trainer on TRL's own classes, against a real rollout service.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { trlEnvironment } from '../../support/python-environment.ts'
import { startBridgeService } from '../support/start-bridge-service.ts'
import { startTrainWorker, type TrainWorker } from './train-worker.ts'

const model = fileURLToPath(new URL('../../../examples/periodic-table/model', import.meta.url))
let folder: string
let worker: TrainWorker
let trainings = 0

beforeAll(async () => {
  worker = startTrainWorker(await trlEnvironment())
  folder = await mkdtemp(join(tmpdir(), 'aworld train trl-'))
}, 900_000)

afterAll(async () => {
  await worker?.close()
  await rm(folder, { recursive: true, force: true })
})

async function writeTasks(file: string, count: number, content: (index: number) => string): Promise<string> {
  const lines = Array.from({ length: count }, (_, index) => ({
    id: `t${index}`,
    row: { prompt: [{ role: 'user', content: content(index) }], dataSource: 'toy', rewardModel: null, extraInfo: {}, index, columns: {} },
  }))
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return file
}

interface TrainedLine {
  readonly step: number
  readonly keys: readonly { readonly key: string; readonly maskTokens: number }[]
  readonly rowsPadded: number
  readonly maxLogprobDifference: number | null
}

interface Training {
  readonly path: string
  train(incarnation: string, configuration?: Readonly<Record<string, unknown>>, fault?: string): ReturnType<TrainWorker['train']>
  ledger<Line>(incarnation: string, name: string): Promise<Line[]>
  metrics(): Promise<{ readonly step: number; readonly data: Readonly<Record<string, number>> }[]>
  [Symbol.asyncDispose](): Promise<void>
}

async function openTraining({
  lora = null,
  content = (index: number) => `task ${index}`,
  ...setting
}: Readonly<Record<string, unknown>> & { readonly content?: (index: number) => string } = {}): Promise<Training> {
  const path = await mkdtemp(join(folder, `training-${trainings++}-`))
  const serviceOptions = { path: join(path, 'run'), port: 0, token: 't', directory: model, turns: 2, rows: 'last', reward: 'length' }
  const service = await startBridgeService({ ...serviceOptions, ...setting })
  const tasks = {
    train: await writeTasks(join(path, 'train.jsonl'), 8, content),
    test: await writeTasks(join(path, 'test.jsonl'), 3, content),
  }
  const read = async <Line>(file: string) =>
    (await readFile(file, 'utf8').catch(() => ''))
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line)
  return {
    path,
    train: (incarnation, configuration = {}, fault) =>
      worker.train({
        fault,
        metrics: join(path, 'metrics.jsonl'),
        plan: {
          model,
          configuration: {
            max_steps: 2,
            num_generations: 4,
            per_device_train_batch_size: 8,
            max_completion_length: 160,
            learning_rate: 1e-3,
            save_strategy: 'no',
            ...configuration,
          },
          lora,
          tasks,
          evaluation: { samples: 2 },
          maxPromptTokens: 200,
          logprobTolerance: 1e-4,
          checkpoints: join(path, 'checkpoints'),
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

const total = (lines: readonly { readonly tokens: number }[]) => lines.reduce((sum, { tokens }) => sum + tokens, 0)

describe('with the trainer’s own model', { timeout: 600_000 }, () => {
  test('trains what was sampled and nothing else, and a later start goes on from the checkpoint', async () => {
    await using training = await openTraining()
    expect(await training.train('first', { save_strategy: 'steps', save_steps: 1, eval_strategy: 'steps', eval_steps: 2 })).toBeNull()
    const trained = await training.ledger<TrainedLine>('first', 'trained')
    expect(trained.map(({ step, rowsPadded, keys }) => [step, rowsPadded, keys.length])).toEqual([
      [1, 0, 8],
      [2, 0, 8],
    ])
    for (const { maxLogprobDifference } of trained) expect(maxLogprobDifference).toBeLessThan(1e-4)
    const sampled = await training.ledger<{ key: string; version: number; tokens: number }>('first', 'sampled')
    const ofTraining = sampled.filter(({ key }) => key.split('/')[2] === 'train')
    expect(trained.flatMap(({ keys }) => keys).reduce((sum, { maskTokens }) => sum + maskTokens, 0)).toBe(total(ofTraining))
    expect([...new Set(ofTraining.map(({ version }) => version))]).toEqual([0, 1])
    const metrics = await training.metrics()
    expect(
      metrics.map(({ step, data }) => [step, 'timing_s/update' in data, 'timing_s/checkpoint' in data, 'eval_reward' in data]),
    ).toEqual([
      [1, true, true, false],
      [2, true, true, true],
    ])
    expect(metrics[1]?.data['eval_failed']).toBe(0)

    expect(await training.train('second', { max_steps: 3 })).toBeNull()
    const [third, ...more] = await training.ledger<TrainedLine>('second', 'trained')
    expect(more).toEqual([])
    expect(third).toMatchObject({ step: 3, rowsPadded: 0 })
    expect(third?.maxLogprobDifference).toBeLessThan(1e-4)
  })

  test('trains an adapter of peft', async () => {
    await using training = await openTraining({ lora: { r: 4, target_modules: 'all-linear' } })
    expect(await training.train('lora')).toBeNull()
    const trained = await training.ledger<TrainedLine>('lora', 'trained')
    expect(trained).toHaveLength(2)
    for (const { maxLogprobDifference } of trained) expect(maxLogprobDifference).toBeLessThan(1e-4)
  })

  test('generations of several steps and passes are each counted once', async () => {
    await using training = await openTraining()
    const configuration = { per_device_train_batch_size: 4, steps_per_generation: 2, num_iterations: 2, max_steps: 4 }
    expect(await training.train('passes', configuration)).toBeNull()
    const keys = (await training.ledger<TrainedLine>('passes', 'trained')).flatMap((line) => line.keys.map(({ key }) => key))
    expect(keys).toHaveLength(8)
    expect(new Set(keys).size).toBe(8)
  })

  test('a failed rollout has no part in its group, and a batch of them ends the run', async () => {
    await using some = await openTraining({ content: (index: number) => (index % 2 ? 'This throws.' : `task ${index}`) })
    expect(await some.train('some', { shuffle_dataset: false })).toBeNull()
    const trained = await some.ledger<TrainedLine>('some', 'trained')
    expect(trained.map(({ keys, rowsPadded }) => [keys.length, rowsPadded])).toEqual([
      [4, 4],
      [4, 4],
    ])
    expect((await some.metrics())[0]?.data['rollouts/replaced']).toBe(8)
    await using all = await openTraining({ content: () => 'This throws.' })
    expect(await all.train('all')).toMatchObject({ code: 'TRAINER_EMPTY_BATCH', message: expect.stringContaining('the agent threw') })
  })
})

describe('what is broken is found', { timeout: 600_000 }, () => {
  test.each([
    ['env-mask-ignored', 'BATCH_MISMATCH', {}],
    ['temperature-wrong', 'POLICY_LOGPROB_MISMATCH', {}],
    ['stale-engine', 'POLICY_LOGPROB_MISMATCH', {}],
    [undefined, 'CONFIG_INVALID', { top_p: 0.9 }],
    [undefined, 'CONFIG_INVALID', { learning_rat: 1e-3 }],
    [undefined, 'CONFIG_INVALID', { output_dir: 'elsewhere' }],
    [undefined, 'CONFIG_INVALID', { use_vllm: true }],
    [undefined, 'ValueError', { num_generations: 1 }],
  ])('%s: %s %j', async (fault, code, configuration) => {
    await using training = await openTraining()
    expect(await training.train('broken', configuration, fault)).toMatchObject({ code })
    const trained = await training.ledger<TrainedLine>('broken', 'trained')
    expect(trained.length).toBe(fault === 'stale-engine' ? 1 : 0)
  })

  test('rows of which TRL trains one only', async () => {
    await using training = await openTraining({ rows: 'all', asides: true })
    expect(await training.train('rows')).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('last or longest') })
  })
})
