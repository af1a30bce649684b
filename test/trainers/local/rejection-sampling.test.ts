// @module-tag quick
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { AgentTrainer, type RunEvent, type RunReport } from 'aworld-train'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { RejectionSampling } from '../../../examples/custom-trainer/rejection-sampling.ts'
import { makeTinyModel } from '../../support/tiny-model.ts'
import { makeProject, type TinyProject, taskLines } from '../../support/tiny-project.ts'

let folder: string
let model: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rejection-sampling-'))
  model = await makeTinyModel(join(folder, 'model'))
})
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))

it('improves held-out reward by rejection sampling', async () => {
  AgentTrainer.registerProcessor('rejection-sampling', RejectionSampling)
  onTestFinished(() => void AgentTrainer.unregisterProcessor('rejection-sampling'))
  const events: RunEvent[] = []
  const trainer = new AgentTrainer({
    baseDirectory: fileURLToPath(new URL('../../../packages/cli/templates/project', import.meta.url)),
    agent: './agent.ts#agent',
    trainDataset: './data/train.jsonl',
    testDataset: './data/test.jsonl',
    rewardFunc: './reward.ts#exactAnswer',
    config: {
      model: { warmUp: './warm-up.ts#warmUp' },
      training: { samplesPerPrompt: 4, learningRate: 2e-3 },
      sampling: { maxTokens: 16 },
      limits: { maxTurns: 4 },
      engine: { simd: 'plain' },
    },
    runPath: join(folder, 'runs'),
    trainEngineName: 'rejection-sampling',
    onEvent: (event) => events.push(event),
  })
  const report = await trainer.train()
  expect(report.after!.reward - report.before!.reward).toBeGreaterThanOrEqual(0.3)
  expect(report.curve.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5])
  expect(report.counts.rollouts).toBe(5 * 88 * 4 + 2 * 32)
  expect(report.counts.modelCalls.gateway).toBeGreaterThan(1.5 * report.counts.rollouts)
  expect(report.counts.modelCalls.engine).toBe(report.counts.modelCalls.gateway)
  expect(report.ledger).toMatchObject({ unexplained: 0, trained: expect.any(Number) })
  expect(JSON.parse(await readFile(join(report.path, 'report.json'), 'utf8'))).toEqual(report)
  expect(report.checkpoints).toEqual([join('checkpoints', 'last')])
  expect(existsSync(join(report.path, 'checkpoints', 'last', 'model.safetensors'))).toBe(true)
  expect(events.at(0)).toMatchObject({ type: 'phase-progress', phase: 'warm-up' })
  const lastRollouts = {
    type: 'phase-progress',
    phase: 'rollout 5',
    done: 352,
    total: 352,
    metrics: { reward: report.curve.at(-1)!.reward },
  }
  expect(events.filter((event) => event.type === 'phase-progress').at(-1)).toMatchObject(lastRollouts)
  expect(events.at(-1)).toMatchObject({ type: 'run-end', status: 'finished' })
})

it('goes on after it was killed as if it had not been', async () => {
  const files = {
    'train.jsonl': `${taskLines(40)}\n`,
    'train.ts': `import { AgentTrainer } from 'aworld-train'
      import { RejectionSampling } from '${import.meta.resolve('../../../examples/custom-trainer/rejection-sampling.ts')}'
      import definition from './aworld-train.config.ts'
      AgentTrainer.registerProcessor('rejection-sampling', RejectionSampling)
      await new AgentTrainer({ ...definition, testDataset: './train.jsonl', trainEngineName: 'rejection-sampling' }).train()`,
  }
  /** Runs the training in a process of its own, which `onStart` is given; resolves when it has ended. */
  const train = async (project: TinyProject, onStart: (child: ChildProcess) => void = () => {}) => {
    const env = { ...process.env, AWORLD_TRAIN_SIMD: 'plain' }
    const child = spawn(process.execPath, ['train.ts'], { cwd: project.folder, env, stdio: 'ignore' })
    onStart(child)
    await once(child, 'exit')
  }
  const read = async ({ runs }: TinyProject, name: string) => await readFile(join((await runs())[0] ?? '', name), 'utf8').catch(() => '')
  const [whole, killed] = [await makeProject(folder, model, { files }), await makeProject(folder, model, { files })]
  await train(whole)
  await train(killed, async (child) => {
    while (!(await read(killed, 'events.jsonl')).includes('"type":"step-end"')) await setTimeout(5)
    child.kill('SIGKILL')
  })
  expect(await read(killed, 'report.json')).toBe('')
  await train(killed)
  expect(await killed.runs()).toHaveLength(1)
  const [report, resumed] = [JSON.parse(await read(whole, 'report.json')), JSON.parse(await read(killed, 'report.json'))] as RunReport[]
  expect(report!.curve).toHaveLength(5)
  expect(resumed!.curve.map(({ reward }) => reward)).toEqual(report!.curve.map(({ reward }) => reward))
  expect(resumed).toMatchObject({ before: report!.before, after: report!.after, ledger: report!.ledger })
})
