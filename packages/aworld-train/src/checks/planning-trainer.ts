import { resolve } from 'node:path'
import { type AgentProgram, TrainError } from '@aworld-train/core'
import { type DatasetSource, type LoadedAgent, type RewardSource, type RunOptions, TrainerProcessor } from '@aworld-train/training'
import type { TrainableAgent } from '../load/load-agent.ts'
import { loadTrainableAgent } from './trainable-agent.ts'

/** A trainer that takes run options. AgentTrainer passes them right after creating it. */
export interface TakesRunOptions {
  useRunOptions(options: RunOptions): void
}

export function takesRunOptions(value: object): value is TakesRunOptions {
  return typeof (value as Partial<TakesRunOptions>).useRunOptions === 'function'
}

/** The inputs that the checks have received so far. */
interface TrainerInputs {
  options: RunOptions
  agent: LoadedAgent | undefined
  train: DatasetSource | undefined
  test: DatasetSource | undefined
  reward: RewardSource | undefined
}

/** A trainer whose checks collect the inputs of a run and make a plan of them. The check of the configuration sets `planned`. */
export abstract class PlanningTrainer<Plan> extends TrainerProcessor implements TakesRunOptions {
  protected readonly inputs: TrainerInputs = { options: {}, agent: undefined, train: undefined, test: undefined, reward: undefined }
  protected planned: Plan | undefined

  useRunOptions(options: RunOptions): void {
    this.inputs.options = options
  }

  /** The plan that the checks have made; absent until they have run. */
  get plan(): Plan | undefined {
    return this.planned
  }

  override async checkAgent(agent: unknown): Promise<AgentProgram> {
    this.inputs.agent = await loadTrainableAgent(agent as TrainableAgent, this.baseDirectory)
    return this.inputs.agent.program
  }

  override async checkDataset(trainDataset?: unknown, testDataset?: unknown): Promise<void> {
    this.inputs.train = trainDataset as DatasetSource | undefined
    this.inputs.test = testDataset as DatasetSource | undefined
  }

  protected get baseDirectory(): string {
    return resolve(this.inputs.options.baseDirectory ?? '.')
  }

  /** Throws TRAINER_NOT_INITIALIZED before all checks have passed. */
  protected readyPlan(): Plan {
    if (!this.planned || !this.initialized) {
      throw new TrainError('TRAINER_NOT_INITIALIZED', 'The trainer has not been validated; call train() or validate() of the AgentTrainer.')
    }
    return this.planned
  }
}
