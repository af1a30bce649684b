// The exam of trainers, sat by the real AReaL on the processor.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeTrainer } from '@aworld-train/testing'
import { arealTrainer } from '@aworld-train/trainers/areal'
import { afterAll } from 'vitest'
import { arealEnvironment } from '../../support/python-environment.ts'
import { pythonTrainerSubject } from '../../support/trainer-exam/python-trainer-subject.ts'
import { examModel } from '../../support/trainer-exam/train-exam.ts'

const folder = await mkdtemp(join(tmpdir(), 'aworld train areal exam-'))
afterAll(() => rm(folder, { recursive: true, force: true }))

const python = await arealEnvironment()

describeTrainer('areal', {
  rows: 'last',
  // The default of AReaL's NormConfig.
  advantageEpsilon: 1e-5,
  lossMean: 'token-mean',
  adamEpsilon: 1e-3,
  ...pythonTrainerSubject({
    trainEngineName: 'areal',
    python,
    folder,
    config: ({ promptsPerStep, samplesPerPrompt }, { rolloutTimeoutMs, advantage }) => ({
      model: { path: examModel },
      areal: {
        train_dataset: { batch_size: promptsPerStep },
        gconfig: { n_samples: samplesPerPrompt, max_new_tokens: 400 },
        actor: { ppo_n_minibatches: 1, optimizer: { lr: 1e-3, eps: 1e-3, weight_decay: 0, gradient_clipping: 1e9 } },
        recover: { freq_steps: 1 },
      },
      ...(advantage && { training: { advantage } }),
      keepCheckpoints: null,
      ...(rolloutTimeoutMs !== undefined && { rolloutTimeoutMs }),
    }),
    wrong: {
      unknownKey: {
        change: { areal: { total_train_step: 1 } },
        message: /total_train_step is no field of AReaL's PPOConfig; did you mean total_train_steps/,
      },
      groupOfOne: { change: { areal: { gconfig: { n_samples: 1 } } }, message: /gconfig.n_samples is 1/ },
      allRows: { change: { rows: 'all' }, message: /rows.*last.*longest/s },
    },
    async weights(runPath, step) {
      const target = await mkdtemp(join(folder, 'weights-'))
      await arealTrainer.checkpoints.exportModel({ python, checkpoints: join(runPath, 'checkpoints'), step, target, model: examModel })
      return target
    },
  }),
  not: arealTrainer.facts?.notShown,
})
