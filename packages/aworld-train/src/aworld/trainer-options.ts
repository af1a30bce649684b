import { didYouMean, TrainError } from '@aworld-train/core'
import type { DatasetSource, RewardSource } from '@aworld-train/training'
import type { AgentTrainerOptions } from '../agent-trainer-options.ts'
import type { TrainableAgent } from '../load/load-agent.ts'

/** The options of AgentTrainer under AWorld's names. */
export interface AworldTrainerOptions {
  readonly agent: TrainableAgent
  readonly config?: string | object | null | undefined
  readonly reward_func?: RewardSource | null | undefined
  readonly train_dataset?: DatasetSource | null | undefined
  readonly test_dataset?: DatasetSource | null | undefined
  readonly run_path?: string | null | undefined
  readonly train_engine_name?: string | null | undefined
}

const spellings: Readonly<Record<string, keyof AgentTrainerOptions>> = {
  reward_func: 'rewardFunc',
  train_dataset: 'trainDataset',
  test_dataset: 'testDataset',
  run_path: 'runPath',
  train_engine_name: 'trainEngineName',
}

/** Every option. The type refuses a list that lacks one. */
const options: Readonly<Record<keyof AgentTrainerOptions, true>> = {
  agent: true,
  trainDataset: true,
  testDataset: true,
  rewardFunc: true,
  config: true,
  runPath: true,
  dashboard: true,
  trainEngineName: true,
  baseDirectory: true,
  name: true,
  fresh: true,
  resume: true,
  fromScratch: true,
  model: true,
  samples: true,
  checkpoint: true,
  seed: true,
  steps: true,
  validationDataset: true,
  onEvent: true,
}

/**
 * Converts options to our names; an option that is `null` is left out. Throws CONFIG_INVALID for an unknown one and for two spellings with
 * different values.
 */
export function readTrainerOptions(input: AgentTrainerOptions | AworldTrainerOptions): AgentTrainerOptions {
  const read: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(input ?? {})) {
    const name = spellings[key] ?? key
    if (!Object.hasOwn(options, name))
      throw new TrainError('CONFIG_INVALID', `AgentTrainer has no option "${key}".${didYouMean(key, Object.keys(options))}`)
    if (value === undefined || value === null) continue
    if (name in read && read[name] !== value)
      throw new TrainError('CONFIG_INVALID', `AgentTrainer: "${name}" is given twice with different values; keep one of its spellings.`)
    read[name] = value
  }
  return read as unknown as AgentTrainerOptions
}
