// @module-tag quick
// The bridge's trainer on TRL's own classes, against a real rollout service.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { trlEnvironment } from '../../support/python-environment.ts'
import { everySecondFails, openTraining, type TrainedLine, type TrainingOptions, total } from '../support/open-training.ts'
import { startTrainWorker, type TrainWorker } from '../support/train-worker.ts'

let folder: string
let worker: TrainWorker

beforeAll(async () => {
  worker = startTrainWorker('trl', await trlEnvironment())
  folder = await mkdtemp(join(tmpdir(), 'aworld train trl-'))
}, 900_000)

afterAll(async () => {
  await worker?.close()
  await rm(folder, { recursive: true, force: true })
})

const open = (options: Partial<TrainingOptions> = {}) => openTraining({ folder, worker, ...options })

describe('with the trainer’s own model', { timeout: 600_000 }, () => {
  test('trains what was sampled and nothing else, and a later start goes on from the checkpoint', async () => {
    await using training = await open()
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
    await using training = await open({ lora: { r: 4, target_modules: 'all-linear' } })
    expect(await training.train('lora')).toBeNull()
    const trained = await training.ledger<TrainedLine>('lora', 'trained')
    expect(trained).toHaveLength(2)
    for (const { maxLogprobDifference } of trained) expect(maxLogprobDifference).toBeLessThan(1e-4)
  })

  test('generations of several steps and passes are each counted once', async () => {
    await using training = await open()
    const configuration = { per_device_train_batch_size: 4, steps_per_generation: 2, num_iterations: 2, max_steps: 4 }
    expect(await training.train('passes', configuration)).toBeNull()
    const keys = (await training.ledger<TrainedLine>('passes', 'trained')).flatMap((line) => line.keys.map(({ key }) => key))
    expect(keys).toHaveLength(8)
    expect(new Set(keys).size).toBe(8)
  })

  test('a failed rollout has no part in its group, and a batch of them ends the run', async () => {
    await using some = await open({ content: everySecondFails })
    expect(await some.train('some', { shuffle_dataset: false, max_steps: 3 })).toBeNull()
    const trained = await some.ledger<TrainedLine>('some', 'trained')
    expect(trained.map(({ keys, rowsPadded }) => [keys.length, rowsPadded])).toEqual([
      [4, 4],
      [4, 4],
      [4, 4],
    ])
    expect((await some.metrics()).map(({ data }) => data['rollouts/replaced'])).toEqual([8, 8, 8])
    await using all = await open({ content: () => 'This throws.' })
    expect(await all.train('all')).toMatchObject({ code: 'TRAINER_EMPTY_BATCH', message: expect.stringContaining('the agent threw') })
  })

  test('no response is longer than max_completion_length', async () => {
    await using training = await open()
    expect(await training.train('short', { max_completion_length: 8, max_steps: 1 })).toBeNull()
    const [first] = await training.ledger<TrainedLine>('short', 'trained')
    expect(first?.keys).toHaveLength(8)
    for (const { maskTokens } of first!.keys) expect(maskTokens).toBeLessThanOrEqual(8)
  })
})

describe('what is broken is found', { timeout: 600_000 }, () => {
  test.each([
    ['env-mask-ignored', 'BATCH_MISMATCH', {}],
    ['temperature-wrong', 'POLICY_LOGPROB_MISMATCH', {}],
    ['stale-engine', 'POLICY_LOGPROB_MISMATCH', {}],
    ['logprobs-nan', 'RuntimeError', {}],
    [undefined, 'CONFIG_INVALID', { top_p: 0.9 }],
    [undefined, 'CONFIG_INVALID', { learning_rat: 1e-3 }],
    [undefined, 'CONFIG_INVALID', { output_dir: 'elsewhere' }],
    [undefined, 'CONFIG_INVALID', { use_vllm: true }],
    [undefined, 'ValueError', { num_generations: 1 }],
  ])('%s: %s %j', async (fault, code, configuration) => {
    await using training = await open()
    expect(await training.train('broken', configuration, fault)).toMatchObject({ code })
    const trained = await training.ledger<TrainedLine>('broken', 'trained')
    expect(trained.length).toBe(fault === 'stale-engine' ? 1 : 0)
  })

  test('rows of which TRL trains one only', async () => {
    await using training = await open({ setting: { rows: 'all', asides: true } })
    expect(await training.train('rows')).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('last or longest') })
  })
})
