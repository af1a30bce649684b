// @module-tag quick
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { RunReport } from '@aworld-train/core'
import {
  AgentTrainer,
  type AgentTrainerOptions,
  LocalTrainer,
  type OpenPolicy,
  type RunEvent,
  toTrainingSamples,
  trainSft,
} from 'aworld-train'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { runCli } from '../../support/run-cli.ts'
import { makeTinyModel } from '../../support/tiny-model.ts'
import { makeProject, openTrainer, type TinyProject, taskLines } from '../../support/tiny-project.ts'

let folder: string
let model: string

beforeAll(async () => {
  process.env['AWORLD_TRAIN_SIMD'] = 'plain'
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-custom-'))
  model = await makeTinyModel(join(folder, 'model'))
})

afterAll(async () => {
  delete process.env['AWORLD_TRAIN_SIMD']
  await rm(folder, { recursive: true, force: true })
})

const makeOwn = () => {
  const definition = { trainEngineName: 'own', testDataset: './test.jsonl' }
  return makeProject(folder, model, { definition, files: { 'test.jsonl': `${taskLines(3, 90)}\n` } })
}

type Body = (policy: OpenPolicy) => Promise<unknown>

interface TrainOptions extends Partial<AgentTrainerOptions> {
  /** Whether the trainer closes its policy, and awaits what it returns; good ones do. */
  readonly closes?: boolean
  readonly awaits?: boolean
}

/** Runs `body` as the `train` of a trainer of one's own. */
async function train(project: TinyProject, body: Body, { closes = true, awaits = true, ...options }: TrainOptions = {}) {
  class Own extends LocalTrainer {
    override async train(signal?: AbortSignal): Promise<RunReport> {
      const policy = await this.openPolicy(signal)
      if (!closes) return body(policy) as Promise<RunReport>
      await using _closed = policy
      if (awaits) return (await body(policy)) as RunReport
      return body(policy) as Promise<RunReport>
    }
  }
  AgentTrainer.registerProcessor('own', Own)
  try {
    return await (await openTrainer(project, options)).train()
  } finally {
    AgentTrainer.unregisterProcessor('own')
  }
}

const learn = async ({ learner, config }: OpenPolicy, episodes: Awaited<ReturnType<OpenPolicy['rollout']>>) => {
  const samples = episodes.flatMap((episode) => (episode.reward === 1 ? toTrainingSamples(episode).samples : []))
  await trainSft({ learner, batches: [samples], steps: 1, learningRate: config.training.learningRate })
}

const readReport = async (path: string) => RunReport.parse(JSON.parse(await readFile(join(path, 'report.json'), 'utf8')))

describe('a trainer of one’s own', () => {
  it('leaves a ledger, a curve and a report, of a run that failed too, and resumes', async () => {
    const rounds = async (policy: OpenPolicy, breakIn?: number) => {
      const before = await policy.evaluate(policy.testTasks, 'before')
      for (let round = 1; round <= 3; round++) {
        const episodes = await policy.rollout(policy.trainTasks)
        if (round === breakIn) throw new Error('out of chalk')
        await learn(policy, episodes)
      }
      return await policy.finish({ before, after: await policy.evaluate(policy.testTasks, 'after') })
    }
    const whole = (await train(await makeOwn(), (policy) => rounds(policy))) as RunReport
    expect(whole).toMatchObject({ status: 'finished', counts: { rollouts: 3 * 16 + 2 * 3 }, ledger: { unexplained: 0 } })
    expect(whole.curve.map(({ step, metrics }) => [step, metrics['rollouts']])).toEqual([1, 2, 3].map((step) => [step, 16]))
    expect(whole.ledger!.trained + whole.ledger!.untrained['unselected-by-trainer']! + whole.ledger!.untrained.evaluation!).toBe(
      whole.ledger!.sampled,
    )

    const project = await makeOwn()
    await expect(train(project, (policy) => rounds(policy, 3))).rejects.toThrow('out of chalk')
    const [run] = (await project.runs()) as [string]
    expect(await readReport(run)).toMatchObject({ status: 'failed', curve: [{ step: 1 }, { step: 2 }], ledger: { unexplained: 0 } })
    const events: RunEvent[] = []
    const resumed = (await train(project, (policy) => rounds(policy), { onEvent: (event) => events.push(event) })) as RunReport
    expect(await project.runs()).toEqual([run])
    expect(events[0]).toMatchObject({ type: 'run-start', resumedFromStep: 2 })
    expect(events.filter(({ type }) => type === 'rollout-end')).toHaveLength(3)
    const timeless = ({ path: _p, times: _t, tokenReport: _r, curve, ...report }: RunReport) => ({
      ...report,
      curve: curve.map(({ step, reward, metrics: { rolloutMs: _o, updateMs: _u, stepMs: _s, ...metrics } }) => ({ step, reward, metrics })),
    })
    expect(timeless(resumed)).toEqual(timeless(whole))
    expect(await readReport(run)).toEqual(resumed)
  })

  it('refuses a second evaluation under one name, and says what to do', async () => {
    const result = await train(await makeOwn(), async (policy) => {
      const before = await policy.evaluate(policy.testTasks, 'before')
      await expect(policy.evaluate(policy.testTasks, 'before')).rejects.toMatchObject({
        code: 'ROLLOUT_CONFLICT',
        message: expect.stringMatching(/"before".*such as "before-2"/),
      })
      return await policy.finish({ before })
    })
    expect((result as RunReport).before?.rollouts).toBe(3)
  })

  it('gets no answer of another run, whose trainer has another name', async () => {
    const project = await makeOwn()
    await expect(train(project, () => Promise.reject(new Error('stopped')))).rejects.toThrow('stopped')
    await (await openTrainer(project, { trainEngineName: 'local', steps: 1 })).train()
    expect(await project.runs()).toHaveLength(2)
  })

  it('saves models inside its run alone, and says where', async () => {
    const outside = join(folder, 'outside')
    await train(await makeOwn(), async (policy) => {
      for (const name of ['../model', '../../../out', join(outside, 'abs'), '', '.', 'step-000001', 'a/../../b', '.hidden'])
        await expect(policy.saveModel(name), name).rejects.toMatchObject({
          code: 'CONFIG_INVALID',
          message: expect.stringContaining(JSON.stringify(name)),
        })
      await expect(policy.saveModel('../../out')).rejects.toThrow(`would write ${join(policy.path, '../out')}`)
      expect(await policy.saveModel('rounds/first')).toBe(join(policy.path, 'checkpoints/rounds/first'))
      await symlink(folder, join(policy.path, 'checkpoints/elsewhere'))
      await expect(policy.saveModel('elsewhere/model')).rejects.toMatchObject({
        code: 'CONFIG_INVALID',
        message: expect.stringContaining(folder),
      })
      const { checkpoints } = await policy.finish({})
      expect(checkpoints).toEqual([join('checkpoints', 'rounds', 'first')])
    })
  })

  it.each([true, false])('may return what it has not awaited, with the policy closed (%s) or not', async (closes) => {
    const rejections: unknown[] = []
    const listener = (reason: unknown) => void rejections.push(reason)
    process.on('unhandledRejection', listener)
    onTestFinished(() => void process.off('unhandledRejection', listener))
    const project = await makeOwn()
    const unawaited = { closes, awaits: false }
    expect(await train(project, (policy) => policy.rollout(policy.trainTasks), unawaited)).toHaveLength(16)
    await expect(train(project, (policy) => policy.saveModel('..'), unawaited)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    const helper = async (policy: OpenPolicy) => await policy.saveModel('..')
    await expect(train(project, helper, unawaited)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    const forgetful = (policy: OpenPolicy) => {
      void policy.rollout(policy.trainTasks)
      void policy.learner.publish()
      throw new Error('out of chalk')
    }
    await expect(train(project, forgetful, { ...unawaited, fresh: true })).rejects.toThrow('out of chalk')
    await sleep(10)
    expect(rejections).toEqual([])
    // Its runs are closed, and can be gone on with.
    const report = (await train(project, (policy) => policy.finish({}), unawaited)) as RunReport
    expect(report).toMatchObject({ status: 'finished', counts: { rollouts: 16 } })
  })

  it('is told where it uses a policy whose training has ended', async () => {
    let left: OpenPolicy | undefined
    await train(await makeOwn(), async (policy) => {
      left = policy
      return await policy.finish({})
    })
    await expect(left!.rollout(left!.trainTasks)).rejects.toMatchObject({
      code: 'POLICY_UNAVAILABLE',
      message: expect.stringMatching(/ended.*await/),
    })
  })

  it('that neither closes nor awaits ends its process, which leaves a run to resume', async () => {
    const trainer = `import { AgentTrainer, LocalTrainer } from 'aworld-train'
class Own extends LocalTrainer {
  async train(signal) {
    const policy = await this.openPolicy(signal)
    policy.rollout(policy.trainTasks)
    return policy.rollout(policy.trainTasks)
  }
}
AgentTrainer.registerProcessor('own', Own)
`
    const project = await makeProject(folder, model, { definition: { trainEngineName: 'own' }, files: { 'trainer.ts': trainer } })
    const config = await readFile(join(project.folder, 'aworld-train.config.ts'), 'utf8')
    const { code, stderr } = await runCli(['train', project.folder], {
      onStart: () => {},
      env: { NODE_OPTIONS: `--import=${join(project.folder, 'trainer.ts')}` },
    })
    expect({ code, stderr, config: config.includes('own') }).toEqual({ code: 0, stderr: '', config: true })
    const [run] = (await project.runs()) as [string]
    expect(await readReport(run)).toMatchObject({ status: 'failed', counts: { rollouts: 0 }, ledger: { unexplained: 0 } })
  })

  it('is tried before it samples, as other trainers are', async () => {
    const project = await makeProject(folder, model, {
      definition: { trainEngineName: 'own' },
      files: { 'reward.ts': "export const saysYes = () => { throw new Error('out of chalk') }\n" },
    })
    await expect(train(project, (policy) => policy.rollout(policy.trainTasks))).rejects.toMatchObject({ code: 'REWARD_FAILED' })
    expect(await project.runs()).toEqual([])
  })
})
