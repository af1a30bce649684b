import { mkdir, mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { createTrainerExam, type TrainerExam, type TrainerSubject, type TrainOptions } from '@aworld-train/testing'
import { tinkerFacts } from '../../../packages/aworld-train/src/local/tinker-facts.ts'
import { examModel, readBatches, readTrainedRun, trainExam } from './train-exam.ts'
import { trainKilled } from './train-killed.ts'
import { registerWitnessedTrainers, type WitnessOptions } from './witnessed-trainers.ts'

export interface TinkerSubjectOptions extends Pick<WitnessOptions, 'fault'> {
  readonly url: string
  /** Folder for the runs, which the caller removes. */
  readonly folder: string
}

/** The exam of our own loop over a Tinker service. Weights of later steps are at the service, so only the first step has a reference. */
export function tinkerSubject({ url, folder, fault }: TinkerSubjectOptions): TrainerSubject {
  async function toTraining({ promptsPerStep, samplesPerPrompt }: TrainerExam, { steps, rolloutTimeoutMs, advantage }: TrainOptions) {
    const config = {
      model: { path: examModel },
      tinker: { url },
      training: {
        promptsPerStep,
        samplesPerPrompt,
        learningRate: 1e-3,
        warmupSteps: 0,
        epsilon: 1e-3,
        checkpointEvery: 1,
        ...(advantage && { advantage }),
      },
      limits: { timeoutMs: rolloutTimeoutMs ?? null },
    }
    await mkdir(folder, { recursive: true })
    return { trainEngineName: 'tinker-witnessed', config, runPath: await mkdtemp(join(folder, 'training-')), steps }
  }

  const refusal = (message: RegExp, change: object) => ({
    code: 'CONFIG_INVALID' as const,
    message,
    async train() {
      const exam = createTrainerExam()
      const training = await toTraining(exam, { steps: 1 })
      registerWitnessedTrainers({ folder: training.runPath, start: 'a' })
      return await trainExam(exam, { ...training, config: { ...training.config, ...change } })
    },
  })

  return {
    rows: 'all',
    advantageEpsilon: 1e-4,
    lossMean: 'token-mean',
    adamEpsilon: 1e-3,
    async train(exam, options) {
      const training = await toTraining(exam, options)
      const { runPath } = training
      registerWitnessedTrainers({ folder: runPath, start: 'a', fault })
      const report = await trainExam(exam, training)
      return await readTrainedRun(report, await readBatches([join(runPath, 'batches-a.jsonl')]), [examModel])
    },
    async trainKilled(exam, options) {
      const training = await toTraining(exam, options)
      const { runPath } = training
      const report = await trainKilled((start) => ({ ...training, witness: { folder: runPath, start } }))
      const files = ['a', 'b'].map((start) => join(runPath, `batches-${start}.jsonl`))
      return await readTrainedRun(report, await readBatches(files), [examModel])
    },
    rolloutTimeoutMs: 5000,
    refusals: {
      unknownKey: refusal(/learningRat.*learningRate/s, { training: { learningRat: 1 } }),
      groupOfOne: refusal(/samplesPerPrompt is 1/, { training: { samplesPerPrompt: 1 } }),
      allRows: 'it trains every row',
      missingPackage: 'it has no Python',
      unreachable: {
        ...refusal(/127\.0\.0\.1:9\b/, { tinker: { url: 'http://127.0.0.1:9', patienceMs: 500 } }),
        code: 'POLICY_UNAVAILABLE',
      },
    },
    not: tinkerFacts.notShown,
  }
}
