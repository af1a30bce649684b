import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TrainerStart } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { GrpoPlan } from '../hugging-face/plan-grpo.ts'
import { swiftTrainer } from './swift-trainer.ts'

const packages = {
  'ms-swift': '4.6.0',
  torch: '2.13.0',
  transformers: '5.19.0',
  datasets: '4.8.4',
  accelerate: '1.15.0',
  trl: '0.29.1',
  peft: '0.20.0',
  msgspec: '0.22.0',
  aiohttp: '3.14.5',
}

test.each([
  ['3.11.7', packages, []],
  ['3.10.1', packages, ['error python']],
  ['3.13.0', packages, []],
  ['3.14.0', packages, ['warning python']],
  ['3.12.0', { ...packages, 'ms-swift': null }, ['error ms-swift']],
  ['3.12.0', { ...packages, 'ms-swift': '4.5.1' }, ['error ms-swift']],
  ['3.12.0', { ...packages, 'ms-swift': '4.6.1' }, ['warning ms-swift']],
  ['3.12.0', { ...packages, trl: '1.16.0' }, ['error trl']],
  ['3.12.0', { ...packages, msgspec: null }, ['error msgspec']],
  ['3.12.0', { ...packages, aiohttp: null }, ['error aiohttp']],
])('Python %s with %j', (version, installed, expected) => {
  expect(swiftTrainer.python.judge({ version, packages: installed }).map(({ level, about }) => `${level} ${about}`)).toEqual(expected)
})

test('torch of the processor, of a GPU, or of a CUDA that there is none for', () => {
  const driver = { version: '580.65.06', cuda: '13.0', gpus: [] }
  const file = (torch: string, each: typeof driver | null) =>
    swiftTrainer.python.planSetup({ torch, driver: each }).requirements.split('/').at(-1)
  expect([file('cpu', driver), file('auto', null), file('auto', driver), file('13.0', null)]).toEqual([
    'ms-swift-4.6.0-cpu.txt',
    'ms-swift-4.6.0-cpu.txt',
    'ms-swift-4.6.0.txt',
    'ms-swift-4.6.0.txt',
  ])
  expect(() => file('12.6', null)).toThrow(/not known/)
  expect(() => file('auto', { ...driver, version: '535.1' })).toThrow(/too old/)
})

test.each([
  [{}, '0'],
  [{ CUDA_VISIBLE_DEVICES: '3, 1' }, '3'],
  [{ CUDA_VISIBLE_DEVICES: '' }, ''],
])('of the GPUs of %j ms-swift sees "%s"', (inherited, gpu) => {
  const bridge = { bridgeDirectory: '/b', channelUrl: '', tokenFile: '', run: 'one', path: '/runs/one', incarnation: '', metricsFile: '' }
  const { environment } = swiftTrainer.command({} as GrpoPlan, { python: 'python', bridge, inherited } as TrainerStart)
  expect(environment).toMatchObject({ CUDA_VISIBLE_DEVICES: gpu })
})

test('a line of metrics is a step with its evaluation and checkpoint, or the evaluation before training', () => {
  const { readMetrics } = swiftTrainer.output
  const line = {
    reward: 0.5,
    loss: 0.1,
    'timing_s/step': 3,
    'timing_s/rollout': 2,
    'timing_s/checkpoint': 0.5,
    eval_reward: 0.75,
    eval_failed: 1,
  }
  expect(readMetrics(line)).toMatchObject({
    step: { metrics: { rewardMean: 0.5, loss: 0.1, rolloutMs: 2000 }, phasesMs: { rollout: 2000, checkpoint: 500 }, saved: true },
    evaluation: { reward: 0.75, failed: 1 },
  })
  expect(readMetrics({ eval_reward: 0.25, eval_failed: 0 })).toMatchObject({ step: null, evaluation: { reward: 0.25 } })
})

test('a run goes on from the newest checkpoint that was written to its end', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swift checkpoints-'))
  const { resumable, steps } = swiftTrainer.checkpoints
  expect([resumable(folder), steps(join(folder, 'absent'))]).toEqual([0, []])
  for (const step of [2, 10, 12, 14]) await mkdir(join(folder, `checkpoint-${step}`))
  for (const step of [2, 10]) await writeFile(join(folder, `checkpoint-${step}`, 'trainer_state.json'), '{}')
  await writeFile(join(folder, 'checkpoint-14', 'trainer_state.json'), '{"epoch": 0.')
  expect([resumable(folder), steps(folder)]).toEqual([10, [2, 10]])
  await rm(folder, { recursive: true })
})

test.each([
  ['aworld_train_bridge.errors.RunError: BATCH_MISMATCH: row 0 of the batch', 'BATCH_MISMATCH'],
  ['aworld_train_bridge.errors.RunError: POLICY_LOGPROB_MISMATCH: they differ', 'POLICY_LOGPROB_MISMATCH'],
  ['aworld_train_bridge.errors.ChannelError: CONFIG_INVALID: no address', 'CONFIG_INVALID'],
  ['RuntimeError: [LOGPROBS_NOT_FINITE] diverged', 'TRAINER_NOT_FINITE'],
  ['ValueError: GRPO requires at least 2 generations', 'TRAINER_FAILED'],
])('%s ends as %s', (line, code) => {
  const reader = swiftTrainer.output.createConsoleReader()
  reader.read('aworld_train_bridge.errors.ChannelError: AGENT_FAILED: one rollout')
  reader.read(line)
  expect(reader.failure()).toMatchObject({ code })
})
