import type { PythonTrainer } from '@aworld-train/core'
import { arealFacts } from './areal-facts.ts'
import { checkMachine } from './check-machine.ts'
import type { ArealConfig, ArealPlan } from './config/areal-config.ts'
import type { ArealSettings } from './config/areal-settings.ts'
import { planAreal } from './config/plan-areal.ts'
import { readArealConfig } from './config/read-areal-config.ts'
import { arealPython } from './python/areal-python.ts'
import { arealCommand } from './run/areal-command.ts'
import { createConsoleReader } from './run/areal-failures.ts'
import { arealCheckpoints } from './run/checkpoints.ts'
import { readArealMetrics } from './run/step-metrics.ts'
import { writeRunFiles } from './run/write-run-files.ts'

/** AReaL as a `PythonTrainer`: its configuration is that of its YAML, its process one, and its rollouts are sampled by vLLM or SGLang, or by the bridge's own server. */
export const arealTrainer: PythonTrainer<ArealSettings, ArealConfig, ArealPlan> = {
  name: 'areal',
  python: arealPython,
  keys: {
    model: 'model.path',
    trainFiles: 'data.trainFiles',
    reward: 'reward.path',
    nativeReward: null,
    promptLength: 'maxPromptTokens',
    responseLength: 'gconfig.max_new_tokens',
    filterPrompts: null,
  },
  rows: ['last', 'longest'],
  readConfig: readArealConfig,
  plan: planAreal,
  // GPU requirements are problems of the configuration, and AReaL's torch knows them best.
  lacks: async () => [],
  writeFiles: writeRunFiles,
  command: arealCommand,
  output: { milestones: [/this machine has no GPU|Servers are all ready/], readMetrics: readArealMetrics, createConsoleReader },
  checkpoints: arealCheckpoints,
  checks: checkMachine,
  facts: arealFacts,
  smokeConfig: (model) => ({
    model: { path: model },
    areal: {
      gconfig: { n_samples: 4, max_new_tokens: 64 },
      train_dataset: { batch_size: 2 },
      actor: { ppo_n_minibatches: 1, optimizer: { lr: 1e-4 } },
    },
  }),
}
