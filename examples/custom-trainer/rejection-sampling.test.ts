import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { AgentTrainer, type RunEvent, type RunReport } from 'aworld-train'
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest'
import { RejectionSampling } from './rejection-sampling.ts'

const project = fileURLToPath(new URL('../../packages/cli/templates/project', import.meta.url))

beforeEach(() => AgentTrainer.registerProcessor('rejection-sampling', RejectionSampling))
afterEach(() => {
  AgentTrainer.unregisterProcessor('rejection-sampling')
})

async function createTrainer(options: { reward?: () => number; warmUp?: string } = {}) {
  const runPath = await mkdtemp(join(tmpdir(), 'custom-trainer-'))
  onTestFinished(() => rm(runPath, { recursive: true, force: true }))
  const events: RunEvent[] = []
  const trainer = await AgentTrainer.create({
    baseDirectory: project,
    agent: './agent.ts#agent',
    trainDataset: './data/train.jsonl',
    testDataset: './data/test.jsonl',
    rewardFunc: options.reward ?? './reward.ts#exactAnswer',
    config: {
      model: { warmUp: options.warmUp ?? './warm-up.ts#warmUp' },
      training: { samplesPerPrompt: 8, learningRate: 2e-3 },
      sampling: { maxTokens: 4 },
      limits: { maxTurns: 2 },
      engine: { simd: 'plain' },
    },
    runPath,
    trainEngineName: 'rejection-sampling',
    onEvent: (event) => events.push(event),
  })
  return { trainer, runPath, events }
}

/** Runs `train.ts` in a process of its own, which `onStart` is given; resolves when it has ended. */
async function runTrainFile(cwd: string, onStart: (child: ChildProcess) => void = () => {}): Promise<void> {
  const file = fileURLToPath(new URL('train.ts', import.meta.url))
  const env = { ...process.env, NODE_OPTIONS: '--conditions=@aworld-train/source', AWORLD_TRAIN_SIMD: 'plain' }
  const child = spawn(process.execPath, [file], { cwd, env, stdio: 'ignore' })
  onStart(child)
  await once(child, 'exit')
}

it('improves held-out reward by rejection sampling, and goes on after it was killed as if it had not been', async () => {
  const { trainer, events } = await createTrainer()
  const report = await trainer.train()
  expect(report.after!.reward - report.before!.reward).toBeGreaterThanOrEqual(0.15)
  expect(report.curve.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5])
  expect(report.counts.rollouts).toBe(5 * 60 * 8 + 2 * 30)
  expect(report.counts.modelCalls.gateway).toBe(report.counts.rollouts)
  expect(report.counts.modelCalls.engine).toBe(report.counts.rollouts)
  expect(report.ledger).toMatchObject({ unexplained: 0, trained: expect.any(Number) })
  expect(JSON.parse(await readFile(join(report.path, 'report.json'), 'utf8'))).toEqual(report)
  expect(report.checkpoints).toEqual([join('checkpoints', 'last')])
  expect(existsSync(join(report.path, 'checkpoints', 'last', 'model.safetensors'))).toBe(true)
  expect(events.at(0)).toMatchObject({ type: 'phase-progress', phase: 'warm-up' })
  const lastRollouts = {
    type: 'phase-progress',
    phase: 'rollout 5',
    done: 480,
    total: 480,
    metrics: { reward: report.curve.at(-1)!.reward },
  }
  expect(events.filter((event) => event.type === 'phase-progress').at(-1)).toMatchObject(lastRollouts)
  expect(events.at(-1)).toMatchObject({ type: 'run-end', status: 'finished' })

  const folder = await mkdtemp(join(tmpdir(), 'custom-trainer-killed-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const runs = async () => (existsSync(join(folder, 'runs')) ? await readdir(join(folder, 'runs')) : [])
  const read = async (name: string) => await readFile(join(folder, 'runs', (await runs())[0] ?? '', name), 'utf8').catch(() => '')
  await runTrainFile(folder, async (child) => {
    while (!(await read('events.jsonl')).includes('"type":"step-end"')) await setTimeout(20)
    child.kill('SIGKILL')
  })
  expect(await read('report.json')).toBe('')
  await runTrainFile(folder)
  expect(await runs()).toHaveLength(1)
  const resumed = JSON.parse(await read('report.json')) as RunReport
  expect(resumed.curve.map(({ reward }) => reward)).toEqual(report.curve.map(({ reward }) => reward))
  expect(resumed).toMatchObject({ before: report.before, after: report.after, ledger: report.ledger })
}, 60_000)

it('learns nothing where no episode is kept', async () => {
  const { trainer } = await createTrainer({ reward: () => 0 })
  const report = await trainer.train()
  expect(report.curve.map(({ reward }) => reward)).toEqual([0, 0, 0, 0, 0])
  expect(report.after!.reward).toBe(0)
}, 60_000)

it('closes the run as stopped when it is aborted', async () => {
  const { trainer, events } = await createTrainer()
  const controller = new AbortController()
  const training = trainer.train(controller.signal)
  while (!events.some(({ type }) => type === 'rollout-end')) await setTimeout(5)
  controller.abort(new Error('enough'))
  await expect(training).rejects.toThrow()
  expect(events.at(-1)).toMatchObject({ type: 'run-end', status: 'stopped' })
}, 60_000)

it('ends the run as failed where the starting model cannot be made', async () => {
  const { trainer, events } = await createTrainer({ warmUp: './reward.ts#exactAnswer' })
  await expect(trainer.train()).rejects.toThrow()
  expect(events.at(-1)).toMatchObject({ type: 'run-end', status: 'failed' })
})

it('is the code that the guide shows', async () => {
  const guide = await readFile(new URL('../../docs/3.guides/custom-trainer.md', import.meta.url), 'utf8')
  const code = await readFile(new URL('rejection-sampling.ts', import.meta.url), 'utf8')
  expect(guide).toContain(code.trimEnd())
})
