import type { PythonTrainer } from '@aworld-train/core'
import { createGrpoConsoleReader, grpoCheckpoints, readGrpoMetrics } from '../hugging-face/grpo-output.ts'
import { planGrpo, writeGrpoFiles } from '../hugging-face/plan-grpo.ts'
import { readGrpoConfig } from '../hugging-face/read-grpo-config.ts'
import { checkMachine } from './check-machine.ts'
import { type SwiftConfig, type SwiftPlan, swiftFramework } from './config/swift-config.ts'
import type { SwiftSettings } from './config/swift-settings.ts'
import { swiftPython } from './python/swift-python.ts'
import { swiftCommand } from './run/swift-command.ts'
import { swiftFacts } from './swift-facts.ts'

/** ms-swift as a `PythonTrainer`: its configuration is the arguments of `swift rlhf --rlhf_type grpo`, its process one, and the model that it trains samples. */
export const swiftTrainer: PythonTrainer<SwiftSettings, SwiftConfig, SwiftPlan> = {
  name: 'swift',
  python: swiftPython,
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
  readConfig: (source, options) => readGrpoConfig(source, options, swiftFramework),
  plan: (config, run, options = {}) => planGrpo(config, run, options, swiftFramework),
  lacks: async () => [],
  writeFiles: (plan, data) => writeGrpoFiles(plan, data, swiftFramework),
  command: swiftCommand,
  output: {
    milestones: [/Global seed set|Start time of running/],
    readMetrics: readGrpoMetrics,
    createConsoleReader: () => createGrpoConsoleReader('swift'),
  },
  checkpoints: grpoCheckpoints,
  checks: checkMachine,
  facts: swiftFacts,
  smokeConfig: (model) => ({ model: { path: model }, swift: { use_cpu: true, max_completion_length: 64 } }),
}
