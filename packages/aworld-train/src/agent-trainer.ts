import { type EvaluationWithResults, errorMessage, type RunReport, TrainError } from '@aworld-train/core'
import type { DryRunReport } from '@aworld-train/trainers/shared'
import {
  createProcessor,
  createTrainerRegistry,
  type DatasetSource,
  firstFailure,
  type RewardSource,
  registerProcessor,
  type TrainerProcessor,
  type TrainerProcessorClass,
  unregisterProcessor,
} from '@aworld-train/training'
import type { AgentTrainerOptions } from './agent-trainer-options.ts'
import { type AworldTrainerOptions, readTrainerOptions } from './aworld/trainer-options.ts'
import { takesRunOptions } from './checks/planning-trainer.ts'
import type { TrainableAgent } from './load/load-agent.ts'
import { LocalTrainer } from './local/local-trainer.ts'
import { TinkerTrainer } from './local/tinker-trainer.ts'
import { progressLines } from './progress-lines.ts'
import { pythonTrainerProcessor } from './python-trainer-processor.ts'
import { pythonTrainers } from './python-trainers.ts'
import { createRunDashboard, type RunDashboard } from './run-dashboard.ts'

const registry = createTrainerRegistry([
  ...pythonTrainers.map((trainer) => [trainer.name, pythonTrainerProcessor(trainer)] as const),
  ['local', LocalTrainer],
  ['tinker', TinkerTrainer],
])

/** Trains an agent. It checks the five modules in order and then runs the trainer that `trainEngineName` names. */
export class AgentTrainer {
  readonly agent: TrainableAgent
  readonly trainDataset: DatasetSource | undefined
  readonly testDataset: DatasetSource | undefined
  readonly rewardFunc: RewardSource | undefined
  readonly config: string | object | undefined
  readonly runPath: string
  readonly trainEngineName: string
  readonly trainProcessor: TrainerProcessor
  readonly #dashboard: RunDashboard | null

  /**
   * Throws AGENT_INVALID for an empty agent, CONFIG_INVALID for an unknown option, and TRAINER_UNKNOWN for an engine that is not
   * registered. Reads and writes nothing.
   */
  constructor(options: AgentTrainerOptions | AworldTrainerOptions) {
    const {
      agent,
      trainDataset,
      testDataset,
      rewardFunc,
      config,
      runPath = 'runs',
      trainEngineName = 'verl',
      dashboard = false,
      ...run
    } = readTrainerOptions(options)
    if (!agent)
      throw new TrainError('AGENT_INVALID', 'The agent is empty; pass an Agent, a Swarm, a function (task, context) => answer, or a path.')
    this.agent = agent
    this.trainDataset = trainDataset
    this.testDataset = testDataset
    this.rewardFunc = rewardFunc
    this.config = config
    this.runPath = runPath
    this.trainEngineName = trainEngineName
    this.trainProcessor = createProcessor(registry, trainEngineName, runPath)
    const { onEvent = progressLines((line) => void process.stderr.write(`${line}\n`)) } = run
    this.#dashboard = dashboard === false ? null : createRunDashboard(dashboard, onEvent)
    if (takesRunOptions(this.trainProcessor)) this.trainProcessor.useRunOptions({ ...run, onEvent: this.#dashboard?.onEvent ?? onEvent })
  }

  /** Constructs and validates. */
  static async create(options: AgentTrainerOptions | AworldTrainerOptions): Promise<AgentTrainer> {
    const trainer = new AgentTrainer(options)
    await trainer.validate()
    return trainer
  }

  /** Runs every check, in the order agent, dataset, reward, config; CONFIG_INVALID names all problems at once. Writes nothing. */
  async validate(): Promise<void> {
    if (this.trainProcessor.initialized) return
    const processor = this.trainProcessor
    const checks = [
      () => processor.checkAgent(this.agent),
      () => processor.checkDataset(this.trainDataset, this.testDataset),
      () => processor.checkReward(this.rewardFunc),
      () => processor.checkConfig(this.config),
    ]
    const problems: unknown[] = []
    for (const check of checks) {
      try {
        await check()
      } catch (problem) {
        problems.push(problem)
      }
    }
    if (problems.length === 1 && problems[0] instanceof TrainError) throw problems[0]
    if (problems.length > 0) {
      const messages = problems.map(errorMessage)
      throw new TrainError(
        'CONFIG_INVALID',
        `The training cannot start:\n${messages.map((message) => `  - ${message.replaceAll('\n', '\n    ')}`).join('\n')}`,
        {
          cause: new AggregateError(problems),
          details: { problems: messages },
        },
      )
    }
    processor.markInitialized()
  }

  /** Validates if needed, then trains. Resolves to the trainer's report, which is a RunReport for `local`. */
  async train<Report = RunReport>(signal?: AbortSignal): Promise<Report> {
    await this.validate()
    return (await this.#closing(() => this.trainProcessor.train(signal))) as Report
  }

  /** Runs the agent over a dataset (the test set by default) without training. After `train()` it uses the weights of that training. */
  async inference<Report = EvaluationWithResults>(
    dataset: DatasetSource | undefined = this.testDataset,
    signal?: AbortSignal,
  ): Promise<Report> {
    await this.validate()
    if (!this.trainProcessor.inference) {
      throw new TrainError(
        'CONFIG_INVALID',
        `The trainer "${this.trainEngineName}" cannot run inference; use runEvaluation() or eval, with --model and what it exported.`,
      )
    }
    return (await this.#closing(() => this.trainProcessor.inference?.(dataset, signal))) as Report
  }

  /** Writes the files that a training would start with and has the programs that it would start check them. Starts nothing. */
  async dryRun<Report = DryRunReport>(signal?: AbortSignal): Promise<Report> {
    await this.validate()
    if (!this.trainProcessor.dryRun) {
      throw new TrainError('CONFIG_INVALID', `The trainer "${this.trainEngineName}" renders nothing; validate() checks what it is given.`)
    }
    return (await this.trainProcessor.dryRun(signal)) as Report
  }

  /** Returns the result of `work` and closes everything that it opened. */
  async #closing(work: () => unknown): Promise<unknown> {
    try {
      await using stack = new AsyncDisposableStack()
      stack.defer(async () => await this.#dashboard?.close())
      stack.defer(async () => void (await this.trainProcessor.close?.()))
      return await work()
    } catch (error) {
      throw firstFailure(error)
    }
  }

  /** Adds a trainer of your own under `trainEngineName`. */
  static registerProcessor(trainEngineName: string, trainType: TrainerProcessorClass): void {
    registerProcessor(registry, trainEngineName, trainType)
  }

  /** Removes a trainer. Returns whether there was one. */
  static unregisterProcessor(trainEngineName: string): boolean {
    return unregisterProcessor(registry, trainEngineName)
  }
}
