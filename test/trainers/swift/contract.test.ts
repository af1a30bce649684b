// The exam of trainers, sat by the real ms-swift on the processor.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeTrainer } from '@aworld-train/testing'
import { afterAll } from 'vitest'
import { swiftEnvironment } from '../../support/python-environment.ts'
import { pythonTrainerSubject } from '../../support/trainer-exam/python-trainer-subject.ts'
import { examModel } from '../../support/trainer-exam/train-exam.ts'

const folder = await mkdtemp(join(tmpdir(), 'aworld train swift exam-'))
afterAll(() => rm(folder, { recursive: true, force: true }))

describeTrainer('swift', {
  rows: 'last',
  // swift/rl_core/advantage.py, 4.6.0.
  advantageEpsilon: 1e-4,
  // Swift's loss_type dapo.
  lossMean: 'token-mean',
  adamEpsilon: 1e-3,
  ...pythonTrainerSubject({
    trainEngineName: 'swift',
    python: await swiftEnvironment(),
    folder,
    config: ({ promptsPerStep, samplesPerPrompt }, { rolloutTimeoutMs, microBatches = 1, advantage }) => ({
      model: { path: examModel },
      swift: {
        use_cpu: true,
        num_generations: samplesPerPrompt,
        per_device_train_batch_size: (promptsPerStep * samplesPerPrompt) / microBatches,
        gradient_accumulation_steps: microBatches,
        max_completion_length: 400,
        temperature: 1,
        beta: 0,
        loss_type: 'dapo',
        learning_rate: 1e-3,
        lr_scheduler_type: 'constant',
        adam_epsilon: 1e-3,
        weight_decay: 0,
        max_grad_norm: 0,
        save_strategy: 'steps',
        save_steps: 1,
      },
      ...(advantage && { training: { advantage } }),
      ...(rolloutTimeoutMs !== undefined && { rolloutTimeoutMs }),
    }),
    wrong: {
      unknownKey: {
        change: { swift: { learning_rat: 1e-3 } },
        message: /learning_rat is no argument of swift rlhf; did you mean learning_rate/,
      },
      groupOfOne: { change: { swift: { num_generations: 1 } }, message: /num_generations|generations/ },
      allRows: { change: { rows: 'all' }, message: /rows.*last.*longest/s },
    },
    weights: (runPath, step) => join(runPath, 'checkpoints', `checkpoint-${step}`),
  }),
})
