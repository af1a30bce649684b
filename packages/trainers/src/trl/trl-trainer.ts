import type { PythonTrainer } from '@aworld-train/core'
import { createGrpoConsoleReader, grpoCheckpoints, readGrpoMetrics } from '../hugging-face/grpo-output.ts'
import { planGrpo, writeGrpoFiles } from '../hugging-face/plan-grpo.ts'
import { readGrpoConfig } from '../hugging-face/read-grpo-config.ts'
import { checkMachine, lacks } from './check-machine.ts'
import { type TrlConfig, type TrlPlan, trlFramework } from './config/trl-config.ts'
import type { TrlSettings } from './config/trl-settings.ts'
import { trlPython } from './python/trl-python.ts'
import { trlCommand } from './run/trl-command.ts'
import { trlFacts } from './trl-facts.ts'

/** TRL as a `PythonTrainer`: its configuration is GRPOConfig's fields, its process one, and its rollouts are sampled by the model that it trains, or by vLLM. */
export const trlTrainer: PythonTrainer<TrlSettings, TrlConfig, TrlPlan> = {
  name: 'trl',
  python: trlPython,
  keys: {
    model: 'model.path',
    trainFiles: 'data.trainFiles',
    reward: 'reward.path',
    nativeReward: null,
    promptLength: 'maxPromptTokens',
    responseLength: 'max_completion_length',
    filterPrompts: null,
  },
  rows: ['last', 'longest'],
  readConfig: (source, options) => readGrpoConfig(source, options, trlFramework),
  plan: (config, run, options = {}) => planGrpo(config, run, options, trlFramework),
  lacks,
  writeFiles: (plan, data) => writeGrpoFiles(plan, data, trlFramework),
  command: trlCommand,
  output: {
    milestones: [/use_cpu|Loading weights/],
    readMetrics: readGrpoMetrics,
    createConsoleReader: () => createGrpoConsoleReader('trl'),
  },
  checkpoints: grpoCheckpoints,
  checks: checkMachine,
  facts: trlFacts,
  smokeConfig: (model) => ({ model: { path: model }, trl: { use_cpu: true, max_completion_length: 64 } }),
}
