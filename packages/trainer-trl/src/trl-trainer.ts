import type { DrivenTrainer } from '@aworld-train/core'
import { checkMachine, lacks } from './check-machine.ts'
import { planTrl } from './config/plan-trl.ts'
import { readTrlConfig } from './config/read-trl-config.ts'
import type { TrlConfig, TrlPlan } from './config/trl-config.ts'
import type { TrlSettings } from './config/trl-settings.ts'
import { trlPython } from './python/trl-python.ts'
import { checkpointSteps, pathOf, resumableStep } from './run/checkpoints.ts'
import { exportTrlModel } from './run/export-model.ts'
import { readTrlMetrics } from './run/step-metrics.ts'
import { trlCommand } from './run/trl-command.ts'
import { createConsoleReader } from './run/trl-failures.ts'
import { writeRunFiles } from './run/write-run-files.ts'
import { trlFacts } from './trl-facts.ts'

/** TRL, driven: its configuration is GRPOConfig's fields, its process one, and its rollouts are sampled by the model that it trains, or by vLLM. */
export const trlTrainer: DrivenTrainer<TrlSettings, TrlConfig, TrlPlan> = {
  name: 'trl',
  python: trlPython,
  keys: {
    model: 'model.path',
    trainFiles: 'data.trainFiles',
    reward: 'reward.path',
    nativeReward: null,
    promptLength: 'aworldTrain.maxPromptTokens',
    responseLength: 'max_completion_length',
    filterPrompts: null,
  },
  rows: ['last', 'longest'],
  readConfig: readTrlConfig,
  plan: planTrl,
  lacks,
  writeFiles: writeRunFiles,
  command: trlCommand,
  output: { milestones: [/use_cpu|Loading weights/], readMetrics: readTrlMetrics, createConsoleReader },
  checkpoints: { resumable: resumableStep, steps: checkpointSteps, pathOf, exportModel: exportTrlModel },
  checks: checkMachine,
  facts: trlFacts,
  smokeConfig: (model) => ({ model: { path: model }, use_cpu: true, max_completion_length: 64 }),
}
