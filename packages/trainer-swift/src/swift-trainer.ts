import type { DrivenTrainer } from '@aworld-train/core'
import { checkMachine } from './check-machine.ts'
import { planSwift } from './config/plan-swift.ts'
import { readSwiftConfig } from './config/read-swift-config.ts'
import type { SwiftConfig, SwiftPlan } from './config/swift-config.ts'
import type { SwiftSettings } from './config/swift-settings.ts'
import { swiftPython } from './python/swift-python.ts'
import { checkpointSteps, pathOf, resumableStep } from './run/checkpoints.ts'
import { exportSwiftModel } from './run/export-model.ts'
import { readSwiftMetrics } from './run/step-metrics.ts'
import { swiftCommand } from './run/swift-command.ts'
import { createConsoleReader } from './run/swift-failures.ts'
import { writeRunFiles } from './run/write-run-files.ts'
import { swiftFacts } from './swift-facts.ts'

/** ms-swift, driven: its configuration is the arguments of `swift rlhf --rlhf_type grpo`, its process one, and the model that it trains samples. */
export const swiftTrainer: DrivenTrainer<SwiftSettings, SwiftConfig, SwiftPlan> = {
  name: 'swift',
  python: swiftPython,
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
  readConfig: readSwiftConfig,
  plan: planSwift,
  lacks: async () => [],
  writeFiles: writeRunFiles,
  command: swiftCommand,
  output: { milestones: [/Global seed set|Start time of running/], readMetrics: readSwiftMetrics, createConsoleReader },
  checkpoints: { resumable: resumableStep, steps: checkpointSteps, pathOf, exportModel: exportSwiftModel },
  checks: checkMachine,
  facts: swiftFacts,
  smokeConfig: (model) => ({ model: { path: model }, use_cpu: true, max_completion_length: 64 }),
}
