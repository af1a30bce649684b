import type { PythonTrainer } from '@aworld-train/core'
import type { ModuleSettings } from '../shared/training/module-config.ts'
import type { GrpoFramework } from './grpo-framework.ts'
import { createGrpoConsoleReader, grpoCheckpoints, readGrpoMetrics } from './grpo-output.ts'
import { type GrpoPlan, planGrpo, writeGrpoFiles } from './plan-grpo.ts'
import { type GrpoConfig, readGrpoConfig } from './read-grpo-config.ts'

type GrpoTrainer = PythonTrainer<ModuleSettings, GrpoConfig, GrpoPlan>

interface GrpoTrainerParts extends Pick<GrpoTrainer, 'python' | 'command' | 'checks' | 'facts'>, Partial<Pick<GrpoTrainer, 'lacks'>> {
  readonly milestones: GrpoTrainer['output']['milestones']
}

/** A framework with a GRPOTrainer as a `PythonTrainer`: its process is one. */
export const createGrpoTrainer = (framework: GrpoFramework, { milestones, ...parts }: GrpoTrainerParts): GrpoTrainer => ({
  name: framework.name,
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
  readConfig: (source, options) => readGrpoConfig(source, options, framework),
  plan: (config, run, options = {}) => planGrpo(config, run, options, framework),
  lacks: async () => [],
  writeFiles: (plan, data) => writeGrpoFiles(plan, data, framework),
  output: { milestones, readMetrics: readGrpoMetrics, createConsoleReader: () => createGrpoConsoleReader(framework.name) },
  checkpoints: grpoCheckpoints,
  smokeConfig: (model) => ({ model: { path: model }, [framework.name]: { use_cpu: true, max_completion_length: 64 } }),
  ...parts,
})
