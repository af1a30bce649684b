// @module-tag quick
// The exam of trainers, sat by the one in the box: its own loop, gateway, store and report; and by trainers that are broken.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { groupAdvantages, type Learner } from '@aworld-train/core'
import {
  createTrainerExam,
  describeTrainer,
  examineRun,
  type TrainerExam,
  type TrainerSubject,
  type TrainOptions,
} from '@aworld-train/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { localFacts } from '../../../packages/aworld-train/src/local/local-facts.ts'
import { examModel, readBatches, readTrainedRun, trainExam } from '../../support/trainer-exam/train-exam.ts'
import { trainKilled } from '../../support/trainer-exam/train-killed.ts'
import { registerWitnessedTrainers, type WitnessOptions } from '../../support/trainer-exam/witnessed-trainers.ts'

const folder = await mkdtemp(join(tmpdir(), 'aworld-train-exam-'))
afterAll(() => rm(folder, { recursive: true, force: true }))
let trainings = 0

const arithmetic = { rows: 'all', advantageEpsilon: 1e-4, lossMean: 'token-mean', adamEpsilon: 1e-3 } as const

const config = ({ promptsPerStep, samplesPerPrompt }: TrainerExam, { rolloutTimeoutMs, advantage }: TrainOptions) => ({
  model: { path: examModel },
  engine: { simd: 'plain', threads: 1 },
  training: {
    promptsPerStep,
    samplesPerPrompt,
    learningRate: 1e-3,
    warmupSteps: 0,
    weightDecay: 0,
    maxGradNorm: 0,
    epsilon: arithmetic.adamEpsilon,
    checkpointEvery: 1,
    ...(advantage && { advantage }),
    // The exam looks, and not the loop's own check.
    logprobCheck: { tokens: 0 },
  },
  limits: { timeoutMs: rolloutTimeoutMs ?? null },
})

const toTraining = (exam: TrainerExam, options: TrainOptions) => ({
  trainEngineName: 'local-witnessed',
  config: config(exam, options),
  runPath: join(folder, `training-${trainings++}`),
  steps: options.steps,
})

/** The trainer in the box, with a fault between its loop and its learner. */
const toTrain =
  (fault: Pick<WitnessOptions, 'fault' | 'isStale'> = {}): TrainerSubject['train'] =>
  async (exam, options) => {
    const training = toTraining(exam, options)
    const { runPath, steps } = training
    registerWitnessedTrainers({ folder: runPath, start: 'a', ...fault })
    const weights = Array.from({ length: steps + 1 }, (_, step) => join(runPath, `weights-a-${step}`))
    return await readTrainedRun(await trainExam(exam, training), await readBatches([join(runPath, 'batches-a.jsonl')]), weights)
  }

const refusal = (message: RegExp, change: object) => ({
  code: 'CONFIG_INVALID' as const,
  message,
  async train() {
    const exam = createTrainerExam()
    const { config, ...training } = toTraining(exam, { steps: 1 })
    return await trainExam(exam, { ...training, config: { ...config, training: { ...config.training, ...change } } })
  },
})

describeTrainer('local', {
  ...arithmetic,
  train: toTrain(),
  async trainKilled(exam, options) {
    const training = toTraining(exam, options)
    const folder = training.runPath
    const report = await trainKilled((start) => ({ ...training, witness: { folder, start } }))
    const files = ['a', 'b'].map((start) => join(folder, `batches-${start}.jsonl`))
    return await readTrainedRun(report, await readBatches(files), [])
  },
  rolloutTimeoutMs: 5000,
  refusals: {
    unknownKey: refusal(/learningRat.*learningRate/s, { learningRat: 1 }),
    groupOfOne: refusal(/samplesPerPrompt is 1/, { samplesPerPrompt: 1 }),
    allRows: 'it trains every row',
    missingPackage: 'it has no Python',
    unreachable: 'it asks nobody',
  },
  not: localFacts.notShown,
})

describe('a trainer that is broken fails the check that is named after it', () => {
  type Request = Parameters<Learner['update']>[0]
  const changed = (change: (request: Request) => Request) => ({
    fault: (learner: Learner): Learner => ({ ...learner, update: (request) => learner.update(change(request)) }),
  })
  const changedSamples = (change: (samples: Request['samples']) => Request['samples']) =>
    changed((request) => ({ ...request, samples: change(request.samples) }))

  const withGroupsByPrompt = (samples: Request['samples']) => {
    // The first row of a rollout has its first turn in the mask.
    const rollouts = [...Map.groupBy(samples, ({ provenance }) => provenance.rollout).values()]
    const promptOf = (rows: Request['samples']) => rows[0]!.tokenIds.slice(0, rows[0]!.lossMask.indexOf(1)).join(' ')
    return [...Map.groupBy(rollouts, promptOf).values()].flatMap((group) => {
      const rewards = group.map((rows) => rows[0]!.reward)
      const { advantages } = groupAdvantages(rewards, 'group-relative')
      return group.flatMap((rows, at) => rows.map((row) => ({ ...row, advantage: advantages[at]! })))
    })
  }
  const withoutLoneTokens = (sample: Request['samples'][number]) => ({
    ...sample,
    lossMask: sample.lossMask.map((bit, at, mask) => bit & Math.max(mask[at - 1] ?? 0, mask[at + 1] ?? 0)),
  })

  test.each([
    [
      'the mask of the environment is ignored',
      'rows',
      /Row 0 of step 1 trains \d+ tokens/,
      changedSamples((samples) => samples.map((each) => ({ ...each, lossMask: each.lossMask.map((_, at) => Number(at > 0)) }))),
    ],
    ['a row is left out', 'rows', /Step 1 lacks 1 rows/, changedSamples((samples) => samples.slice(1))],
    [
      'groups are made by position',
      'advantages',
      /advantages/,
      changedSamples((samples) => samples.map((each, at) => ({ ...each, advantage: samples[(at + 1) % samples.length]!.advantage }))),
    ],
    ['groups are made by prompt', 'advantages', /advantages/, changedSamples(withGroupsByPrompt)],
    ['a turn of one token is not trained', 'emptyTurn', /trains \d+ tokens/, changedSamples((samples) => samples.map(withoutLoneTokens))],
    ['the temperature is another', 'logprobs', /logprobs/, changed((request) => ({ ...request, temperature: 0.7 }))],
    [
      'rows weigh alike where tokens should',
      'loss',
      /loss/,
      changed((request) => ({ ...request, loss: { ...request.loss, aggregation: 'sequence-mean' } })),
    ],
    [
      'rows weigh alike where tokens should',
      'direction',
      /cosine/,
      changed((request) => ({ ...request, loss: { ...request.loss, aggregation: 'sequence-mean' } })),
    ],
    ['new weights are never sampled', 'gap', /logprobs of step 2/, { isStale: true }],
  ] as const)('%s: %s', async (_, check, message, fault) => {
    const run = await toTrain(fault)(createTrainerExam({ hasEmptyTurn: true }), { steps: 2 })
    await expect(examineRun(run, arithmetic)[check]()).rejects.toThrow(message)
  })
})
