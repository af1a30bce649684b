import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { arealTrainer } from './areal-trainer.ts'

const packages = { areal: '1.0.4', torch: '2.10.0', transformers: '5.3.0', datasets: '5.2.0', omegaconf: '2.4.0.dev2', aiohttp: '3.14.5' }

test.each([
  ['3.11.7', packages, []],
  ['3.10.1', packages, ['error python']],
  ['3.13.0', packages, ['warning python']],
  ['3.12.0', { ...packages, areal: null }, ['error areal']],
  ['3.12.0', { ...packages, areal: '1.0.2' }, ['error areal']],
  ['3.12.0', { ...packages, areal: '1.1.0' }, ['warning areal']],
  ['3.12.0', { ...packages, aiohttp: null }, ['error aiohttp']],
])('Python %s with %j', (version, installed, expected) => {
  expect(arealTrainer.python.judge({ version, packages: installed }).map(({ level, about }) => `${level} ${about}`)).toEqual(expected)
})

test('torch of the processor, of a GPU, or of a CUDA that there is none for', () => {
  const driver = { version: '580.65.06', cuda: '13.0', gpus: [] }
  const file = (torch: string, each: typeof driver | null) =>
    arealTrainer.python.planSetup({ torch, driver: each }).requirements.split('/').at(-1)
  expect([file('cpu', driver), file('auto', null), file('auto', driver), file('12.8', null)]).toEqual([
    'areal-1.0.4-cpu.txt',
    'areal-1.0.4-cpu.txt',
    'areal-1.0.4.txt',
    'areal-1.0.4.txt',
  ])
  expect(() => file('13.0', null)).toThrow(/not known/)
  expect(() => file('auto', { ...driver, version: '470.1' })).toThrow(/too old/)
})

test('a line of metrics is a step with its evaluation and checkpoint, or the evaluation before training', () => {
  const { readMetrics } = arealTrainer.output
  const line = {
    reward: 0.5,
    'ppo_actor/update/actor_loss/avg': 0.1,
    'timing_s/step': 3,
    'timeperf/rollout': 2,
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

test('a run goes on from its newest checkpoint, and never from one that was not written to its end', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'areal checkpoints-'))
  const { resumable, steps } = arealTrainer.checkpoints
  expect([resumable(folder), steps(join(folder, 'absent'))]).toEqual([0, []])
  for (const name of ['step-2', 'step-10', 'unfinished']) await mkdir(join(folder, name))
  expect([resumable(folder), steps(folder)]).toEqual([10, [2, 10]])
  await rm(folder, { recursive: true })
})

test.each([
  ['[rank0]: aworld_train_bridge.errors.RunError: BATCH_MISMATCH: row 0 of the batch', 'BATCH_MISMATCH'],
  ['aworld_train_bridge.errors.RunError: POLICY_LOGPROB_MISMATCH: they differ', 'POLICY_LOGPROB_MISMATCH'],
  ['aworld_train_bridge.errors.ChannelError: CONFIG_INVALID: no address', 'CONFIG_INVALID'],
  ['[rank0]: RuntimeError: [LOGPROBS_NOT_FINITE] diverged', 'TRAINER_NOT_FINITE'],
  ['[rank0]: RuntimeError: Batch size 3 cannot divide granularity 2.', 'TRAINER_FAILED'],
])('%s ends as %s', (line, code) => {
  const reader = arealTrainer.output.createConsoleReader()
  reader.read('aworld_train_bridge.errors.ChannelError: AGENT_FAILED: one rollout')
  reader.read(line)
  expect(reader.failure()).toMatchObject({ code })
})
