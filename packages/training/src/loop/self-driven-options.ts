import type {
  EpisodeReader,
  EvaluationResult,
  Learner,
  LedgerSummary,
  PolicyGateway,
  PolicyLoss,
  RolloutRunner,
  RunEvent,
  RunProgress,
  RunReport,
  TokenEngine,
  TokenLedger,
  TrainingTask,
} from '@aworld-train/core'
import type { LocalConfig } from '../config/local-config.ts'
import type { Samplers } from './token-accounts.ts'

export interface EvaluationTasks {
  /** Held-out tasks, evaluated before the first and after the last step with the same sampling. */
  readonly test?: readonly TrainingTask[] | undefined
  /** Tasks evaluated every `evaluateEvery` steps to choose the best checkpoint. */
  readonly validation?: readonly TrainingTask[] | undefined
}

export interface SelfDrivenOptions {
  readonly learner: Learner
  /** The policy that `klCoefficient` keeps the training close to. Its weights do not change. */
  readonly reference?: Pick<Learner, 'logprobs'> | undefined
  /** In place of the clipped loss; nothing of it is in the configuration here. */
  readonly loss?: PolicyLoss | null | undefined
  readonly engine: Pick<TokenEngine, 'name' | 'model' | 'sampledTokens' | 'weightVersion'>
  /** The policies that `engine` is made of, by name, if there are several. */
  readonly policies?: Samplers | undefined
  /** Paused while weights are published. Left out if the engine swaps weights by itself. */
  readonly gateway?: Pick<PolicyGateway, 'pause' | 'resume'> | undefined
  readonly runner: RolloutRunner
  readonly store: RunProgress & Pick<EpisodeReader, 'episode'>
  readonly tasks: readonly TrainingTask[]
  readonly evaluation?: EvaluationTasks | undefined
  readonly config: Pick<LocalConfig, 'training' | 'sampling' | 'limits' | 'evaluation' | 'concurrency'>
  readonly seed: number
  /** Aborting it stops the run at once or after the current update. Committed steps stay, and the same options resume. */
  readonly signal: AbortSignal
  /** Called with events of steps, evaluations, checkpoints and warnings. The caller keeps them in the store. */
  readonly onEvent?: ((event: RunEvent) => void) | undefined
  /** Called with the committed result before an error rejects. */
  readonly onFailure?: ((result: SelfDrivenResult) => void) | undefined
  /** Name of the policy in requests; the engine's name by default. */
  readonly policy?: string | undefined
}

export interface SelfDrivenResult {
  readonly status: 'finished' | 'stopped' | 'failed'
  /** Number of committed steps, earlier processes of the run included. */
  readonly steps: number
  readonly resumedFromStep: number | null
  readonly before: EvaluationResult | null
  readonly after: EvaluationResult | null
  readonly greedyBefore: EvaluationResult | null
  readonly greedyAfter: EvaluationResult | null
  readonly curve: RunReport['curve']
  /** The ledger at the end or, if an error ended the run, at the last commit. */
  readonly ledger: TokenLedger
  /** The ledgers of the policies by name, whose sum is `ledger`. */
  readonly policies: Readonly<Record<string, LedgerSummary>>
  readonly episodesByStopReason: Readonly<Record<string, number>>
  readonly rollouts: number
  /** Paths inside the run. */
  readonly checkpoints: readonly string[]
  /** Checkpoint of the last step that has one, with the weights that `after` evaluates. */
  readonly lastCheckpoint: string | null
  readonly bestCheckpoint: string | null
  readonly phasesMs: Readonly<Record<string, number>>
}
