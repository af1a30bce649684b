import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TrainerStart } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { GrpoPlan } from '../hugging-face/plan-grpo.ts'
import { trlTrainer } from './trl-trainer.ts'

const packages = { trl: '1.16.0', torch: '2.13.0', transformers: '5.23.0', datasets: '5.2.0', accelerate: '1.15.0', aiohttp: '3.14.5' }

test.each([
  ['3.11.7', packages, []],
  ['3.10.1', packages, ['error python']],
  ['3.12.0', { ...packages, trl: null }, ['error trl']],
  ['3.12.0', { ...packages, trl: '1.15.2' }, ['error trl']],
  ['3.12.0', { ...packages, trl: '1.17.0' }, ['warning trl']],
  ['3.12.0', { ...packages, aiohttp: null }, ['error aiohttp']],
])('Python %s with %j', (version, installed, expected) => {
  expect(trlTrainer.python.judge({ version, packages: installed }).map(({ level, about }) => `${level} ${about}`)).toEqual(expected)
})

test('torch of the processor, of a GPU, or of a CUDA that there is none for', () => {
  const driver = { version: '580.65.06', cuda: '13.0', gpus: [] }
  const file = (torch: string, each: typeof driver | null) =>
    trlTrainer.python.planSetup({ torch, driver: each }).requirements.split('/').at(-1)
  expect([file('cpu', driver), file('auto', null), file('auto', driver), file('13.0', null)]).toEqual([
    'trl-1.16.0-cpu.txt',
    'trl-1.16.0-cpu.txt',
    'trl-1.16.0.txt',
    'trl-1.16.0.txt',
  ])
  expect(() => file('12.6', null)).toThrow(/not known/)
  expect(() => file('auto', { ...driver, version: '535.1' })).toThrow(/too old/)
})

test.each([
  [{}, '0'],
  [{ CUDA_VISIBLE_DEVICES: '3, 1' }, '3'],
  [{ CUDA_VISIBLE_DEVICES: '' }, ''],
])('of the GPUs of %j TRL sees "%s"', (inherited, gpu) => {
  const bridge = { bridgeDirectory: '/b', channelUrl: '', tokenFile: '', run: 'one', path: '/runs/one', incarnation: '', metricsFile: '' }
  const { environment } = trlTrainer.command({} as GrpoPlan, { python: 'python', bridge, inherited } as TrainerStart)
  expect(environment).toMatchObject({ CUDA_VISIBLE_DEVICES: gpu })
})

test('a line of metrics is a step with its evaluation and checkpoint, or the evaluation before training', () => {
  const { readMetrics } = trlTrainer.output
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
  const folder = await mkdtemp(join(tmpdir(), 'trl checkpoints-'))
  const { resumable, steps } = trlTrainer.checkpoints
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
  ["OSError: We couldn't connect to 'https://huggingface.co' to load the files", 'CONFIG_INVALID'],
  ['ValueError: GRPO requires at least 2 generations', 'TRAINER_FAILED'],
])('%s ends as %s', (line, code) => {
  const reader = trlTrainer.output.createConsoleReader()
  reader.read('aworld_train_bridge.errors.ChannelError: AGENT_FAILED: one rollout')
  reader.read(line)
  expect(reader.failure()).toMatchObject({ code })
})
