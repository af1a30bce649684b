// @module-tag quick
// Services, and a trainer, that are broken in one way each: the check that is there for it ends the training.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocalEngine } from '@aworld-train/engines/local'
import { createTinkerEngine } from '@aworld-train/engines/tinker'
import { createTrainerExam, examineRun, type TinkerServerPolicy } from '@aworld-train/testing'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openTinkerService } from '../../support/tinker-service.ts'
import { makeTinyModel } from '../../support/tiny-model.ts'
import { makeProject, openTrainer, taskLines } from '../../support/tiny-project.ts'
import { tinkerSubject } from '../../support/trainer-exam/tinker-subject.ts'
import { examModel } from '../../support/trainer-exam/train-exam.ts'
import { probeDraw } from './probe-draw.ts'

let folder: string
let model: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld train tinker-'))
  model = await makeTinyModel(join(folder, 'model'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

type Fault = (policy: TinkerServerPolicy) => TinkerServerPolicy

const temperatureWrong: Fault = ({ engine, ...policy }) => ({
  ...policy,
  engine: {
    ...engine,
    generate: (request, signal) => engine.generate({ ...request, sampling: { ...request.sampling, temperature: 0.7 } }, signal),
  },
})

/** It samples what it began with. */
const staleEngine: Fault = ({ learner, engine, ...policy }) => ({
  ...policy,
  engine,
  learner: { ...learner, publish: async () => engine.weightVersion() },
})

/** Rows stand behind each other, and each sees those before it. */
const packingOn: Fault = ({ learner, ...policy }) => ({
  ...policy,
  learner: {
    ...learner,
    async logprobs(rows, temperature) {
      const packed = Int32Array.from(rows.flatMap((row) => [...row]))
      const [logprobs] = await learner.logprobs([packed], temperature)
      let end = 0
      return rows.map(({ length }) => {
        end += length
        return logprobs!.subarray(end - length, end)
      })
    },
  },
})

test.each([
  ['a service that samples at another temperature', temperatureWrong, 1],
  ['a service that samples older weights', staleEngine, 2],
  ['a service whose rows see each other', packingOn, 1],
  ['a sound service', (policy: TinkerServerPolicy) => policy, null],
])(
  '%s',
  async (_, fault, failsInStep) => {
    const createPolicy = async () => fault(await createLocalEngine({ model, threads: 1, simd: 'plain' }))
    await using service = await openTinkerService(model, { createPolicy })
    const project = await makeProject(folder, model, {
      config: {
        training: { steps: 2, samplesPerPrompt: 8, learningRate: 1e-2, warmupSteps: 0 },
        tinker: { url: service.url },
      },
      files: { 'train.jsonl': `${taskLines(8)}\n` },
    })
    const steps: number[] = []
    const trainer = await openTrainer(project, {
      trainEngineName: 'tinker',
      onEvent: (event) => event.type === 'step-start' && steps.push(event.step),
    })
    if (failsInStep === null) await expect(trainer.train()).resolves.toMatchObject({ status: 'finished' })
    else {
      await expect(trainer.train()).rejects.toMatchObject({ code: 'POLICY_LOGPROB_MISMATCH' })
      expect(steps.at(-1)).toBe(failsInStep)
    }
  },
  120_000,
)

/** A draw is from the path before the newest, whose weights are loaded into those that are trained, as SkyRL does it. */
const drawsOlder: Fault = ({ learner, engine, ...policy }) => {
  const published: string[] = []
  return {
    ...policy,
    learner: {
      ...learner,
      async publish() {
        published.push(join(folder, `published-${published.length}`))
        await learner.save(published.at(-1)!)
        return await learner.publish()
      },
    },
    engine: {
      ...engine,
      async generate(request, signal) {
        await learner.load(published.at(-2) ?? published.at(-1)!)
        await learner.publish()
        return await engine.generate(request, signal)
      },
    },
  }
}

test.each([
  ['a service whose draw loads older weights into the learner moves it', drawsOlder, true],
  ['a sound service draws beside the learner', (policy: TinkerServerPolicy) => policy, false],
])(
  '%s',
  async (_, fault, moves) => {
    const createPolicy = async () => fault(await createLocalEngine({ model, threads: 1, simd: 'plain' }))
    await using service = await openTinkerService(model, { createPolicy })
    const tinker = await createTinkerEngine({ url: service.url, model, name: 'tiny' })
    onTestFinished(() => tinker.close())
    const { byUpdate, byDraw } = await probeDraw(tinker)
    expect(byUpdate).toBeGreaterThan(1e-3)
    if (moves) expect(byDraw).toBeGreaterThan(1e-3)
    else expect(byDraw).toBeLessThan(1e-6)
  },
  120_000,
)

test('a trainer that ignores the mask of the environment trains other tokens than were sampled', async () => {
  await using service = await openTinkerService(examModel, { maxModels: 4 })
  const subject = tinkerSubject({
    url: service.url,
    folder,
    fault: (learner) => ({
      ...learner,
      update: (request) =>
        learner.update({
          ...request,
          samples: request.samples.map((each) => ({ ...each, lossMask: each.lossMask.map((_, at) => Number(at > 0)) })),
        }),
    }),
  })
  const run = await subject.train(createTrainerExam(), { steps: 1 })
  await expect(examineRun(run, subject).rows()).rejects.toThrow(/Row 0 of step 1 trains \d+ tokens/)
})
