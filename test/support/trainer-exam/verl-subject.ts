import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import type { TrainerSubject } from '@aworld-train/testing'
import { verlTrainer } from '@aworld-train/trainers/verl'
import { pythonTrainerSubject } from './python-trainer-subject.ts'
import { examModel } from './train-exam.ts'

export interface VerlSubjectOptions {
  /** verl's interpreter. */
  readonly python: string
  /** Folder for the runs, which the caller removes. */
  readonly folder: string
}

/** The exam of verl on a processor. */
export const verlSubject = ({ python, folder }: VerlSubjectOptions): TrainerSubject => ({
  // With all rows, verl would fill the batch up to a second update.
  rows: 'last',
  // verl/trainer/ppo/core_algos.py, compute_grpo_outcome_advantage, 0.9.1.
  advantageEpsilon: 1e-6,
  lossMean: 'token-mean',
  adamEpsilon: 1e-3,
  ...pythonTrainerSubject({
    trainEngineName: 'verl',
    python,
    folder,
    config: ({ promptsPerStep, samplesPerPrompt }, { rolloutTimeoutMs, microBatches, advantage }) => ({
      training: {
        promptsPerStep,
        samplesPerPrompt,
        learningRate: 1e-3,
        warmupSteps: 0,
        weightDecay: 0,
        epsilon: 1e-3,
        maxGradNorm: 1e9,
        checkpointEvery: 1,
        ...(advantage && { advantage }),
      },
      data: { max_prompt_length: 200, max_response_length: 400 },
      actor_rollout_ref: {
        model: { path: examModel },
        ...(microBatches && { actor: { ppo_micro_batch_size_per_gpu: (promptsPerStep * samplesPerPrompt) / microBatches } }),
      },
      smoke: true,
      rows: 'last',
      ...(rolloutTimeoutMs !== undefined && { rolloutTimeoutMs }),
    }),
    wrong: {
      unknownKey: { change: { actor_rollout_ref: { actor: { optim: { learning_rate: 1 } } } }, message: /learning_rate/ },
      groupOfOne: { change: { training: { samplesPerPrompt: 1 } }, message: /rollout\.n|samplesPerPrompt/ },
      allRows: 'its batches hold every row',
    },
    async weights(runPath, step) {
      const target = await mkdtemp(join(folder, 'weights-'))
      await verlTrainer.checkpoints.exportModel({ python, checkpoints: join(runPath, 'checkpoints'), step, target, model: examModel })
      return target
    },
    replacesGroups: true,
  }),
  not: verlTrainer.facts?.notShown,
})
