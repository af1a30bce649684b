import { type PythonTrainer, type ReadConfigOptions, TrainError } from '@aworld-train/core'
import { formatOverride } from './config/hydra-override.ts'
import { readWithVerl } from './config/installed-verl.ts'
import { planVerl } from './config/plan-verl.ts'
import { readVerlConfig } from './config/read-verl-config.ts'
import type { ReadVerlConfigOptions, VerlConfig, VerlConfigSource, VerlPlan } from './config/verl-config.ts'
import type { VerlSettings } from './config/verl-settings.ts'
import { checkMachine } from './doctor/check-machine.ts'
import { judgeStart } from './doctor/judge-start.ts'
import { verlPython } from './python/version-rules.ts'
import { writeRunFiles } from './render/write-run-files.ts'
import { checkpointSteps, resumableStep } from './run/checkpoints.ts'
import { exportVerlModel } from './run/export-model.ts'
import { isTrainingStep, phasesOf, stepMetrics, verlEvaluationMetrics } from './run/step-metrics.ts'
import { verlCommand } from './run/verl-command.ts'
import { createConsoleReader } from './run/verl-failures.ts'
import { verlFacts } from './verl-facts.ts'

/** verl as a `PythonTrainer`: its configuration is Hydra's, its processes are Ray's, its checkpoints are cut for its ranks. */
export const verlTrainer: PythonTrainer<VerlSettings, VerlConfig, VerlPlan> = {
  name: 'verl',
  python: verlPython,
  keys: {
    model: 'actor_rollout_ref.model.path',
    trainFiles: 'data.train_files',
    reward: 'reward.custom_reward_function.path',
    nativeReward: 'reward.native',
    promptLength: 'data.max_prompt_length',
    responseLength: 'data.max_response_length',
    filterPrompts: 'data.filter_overlong_prompts',
  },
  rows: ['all', 'last', 'longest'],
  readConfig: (source, options) => readConfig(source as VerlConfigSource, options),
  plan: planVerl,
  lacks: judgeStart,
  writeFiles: writeRunFiles,
  command: verlCommand,
  output: {
    milestones: [
      /ray init kwargs|Started a local Ray instance|Connected to Ray cluster/,
      /\bpid=\d+/,
      /dataloader initialized|Size of (?:train|val) dataloader/,
    ],
    readMetrics: (numbers) => ({
      step: isTrainingStep(numbers)
        ? { metrics: stepMetrics(numbers), phasesMs: phasesOf(numbers), saved: 'timing_s/save_checkpoint' in numbers }
        : null,
      evaluation: verlEvaluationMetrics(numbers),
    }),
    createConsoleReader,
  },
  checkpoints: {
    resumable: resumableStep,
    steps: checkpointSteps,
    pathOf: (step) => `checkpoints/global_step_${step}`,
    exportModel: exportVerlModel,
  },
  checks: checkMachine,
  facts: verlFacts,
  smokeConfig: (model) => ({
    data: { max_prompt_length: 64, max_response_length: 64 },
    actor_rollout_ref: { model: { path: model } },
    smoke: true,
  }),
}

/** Reads keys in an interpreter that has verl. */
type ReadWith = (python: string, written: Parameters<NonNullable<ReadVerlConfigOptions['verl']>>[1]) => ReturnType<typeof readWithVerl>

/** Reads a configuration. A missing answer of Python is one of its problems. */
export async function readConfig(source: VerlConfigSource, options: ReadConfigOptions, readWith?: ReadWith): Promise<VerlConfig> {
  const { baseDirectory, environment, sections, overrides: { steps, seed, model } = {}, findPython, signal } = options
  const read = readWith ?? ((python, written) => readWithVerl(written, { python, env: { ...environment }, signal }))
  let unanswered: string | null = null
  const config = await readVerlConfig(source, {
    async verl(named, written) {
      const python = await findPython?.(named)
      if (!python) return null
      try {
        return await read(python, written)
      } catch (error) {
        if (!(error instanceof TrainError)) throw error
        unanswered = error.message
        return null
      }
    },
    baseDirectory,
    sections,
    arguments: [
      ...(steps === undefined ? [] : [`trainer.total_training_steps=${steps}`]),
      ...(seed === undefined ? [] : [`data.seed=${seed}`]),
      ...(model === undefined ? [] : [formatOverride('actor_rollout_ref.model.path', model)]),
    ],
  })
  return unanswered === null ? config : { ...config, problems: [...config.problems, unanswered] }
}
