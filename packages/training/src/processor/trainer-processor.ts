/** What a training framework implements for `AgentTrainer` to train with it; the checks are called in the order agent, dataset, reward, config. */
export abstract class TrainerProcessor {
  readonly runPath: string
  #initialized = false

  constructor(runPath: string) {
    this.runPath = runPath
  }

  get initialized(): boolean {
    return this.#initialized
  }

  /** Called once all checks have passed. */
  markInitialized(): void {
    this.#initialized = true
  }

  /** Trains; what it resolves to is what `AgentTrainer.train()` resolves to. */
  abstract train(signal?: AbortSignal): unknown

  abstract checkAgent(agent: unknown): unknown
  abstract checkDataset(trainDataset?: unknown, testDataset?: unknown): unknown
  abstract checkReward(rewardFunc?: unknown): unknown
  abstract checkConfig(config?: unknown): unknown

  /** Runs the agent over a dataset without training. A processor that cannot do that leaves it out. */
  inference?(dataset: unknown, signal?: AbortSignal): unknown

  /** Called when a training or inference has ended in any way. Closes everything that is still open. */
  close?(): unknown

  /** Writes the plan of a training, has it checked, and starts nothing. A processor that cannot do that leaves it out. */
  dryRun?(signal?: AbortSignal): unknown
}

export type TrainerProcessorClass = new (runPath: string) => TrainerProcessor
