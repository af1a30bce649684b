// The exam of trainers, sat by the real TRL on the processor.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeTrainer } from '@aworld-train/testing'
import { trlTrainer } from '@aworld-train/trainers/trl'
import { afterAll } from 'vitest'
import { trlEnvironment } from '../../support/python-environment.ts'
import { pythonTrainerSubject } from '../../support/trainer-exam/python-trainer-subject.ts'
import { examModel } from '../../support/trainer-exam/train-exam.ts'

const folder = await mkdtemp(join(tmpdir(), 'aworld train trl exam-'))
afterAll(() => rm(folder, { recursive: true, force: true }))

describeTrainer('trl', {
  rows: 'last',
  advantageEpsilon: 1e-4,
  // TRL's loss_type dapo.
  lossMean: 'token-mean',
  adamEpsilon: 1e-3,
  ...pythonTrainerSubject({
    trainEngineName: 'trl',
    python: await trlEnvironment(),
    folder,
    config: ({ promptsPerStep, samplesPerPrompt }, { rolloutTimeoutMs, microBatches = 1 }) => ({
      model: { path: examModel },
      trl: {
        use_cpu: true,
        num_generations: samplesPerPrompt,
        per_device_train_batch_size: (promptsPerStep * samplesPerPrompt) / microBatches,
        gradient_accumulation_steps: microBatches,
        max_completion_length: 400,
        learning_rate: 1e-3,
        lr_scheduler_type: 'constant',
        adam_epsilon: 1e-3,
        weight_decay: 0,
        max_grad_norm: 0,
        save_strategy: 'steps',
        save_steps: 1,
      },
      ...(rolloutTimeoutMs !== undefined && { rolloutTimeoutMs }),
    }),
    wrong: {
      unknownKey: {
        change: { trl: { learning_rat: 1e-3 } },
        message: /learning_rat is no field of GRPOConfig; did you mean learning_rate/,
      },
      groupOfOne: { change: { trl: { num_generations: 1 } }, message: /num_generations|generations/ },
      allRows: { change: { rows: 'all' }, message: /rows.*last.*longest/s },
    },
    weights: (runPath, step) => join(runPath, 'checkpoints', `checkpoint-${step}`),
  }),
  not: trlTrainer.facts?.notShown,
})
