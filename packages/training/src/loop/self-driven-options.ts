import type { EpisodeReader, Learner, PolicyGateway, PolicyLoss, RolloutRunner, RunProgress, TokenEngine } from '@aworld-train/core'
import type { EvaluationResult, RunEvent, RunReport, TokenLedger, TrainingTask } from '@aworld-train/protocol'
import type { LocalConfig } from '../config/local-config.ts'

export interface EvaluationTasks {
  /** Held out: evaluated before the first and after the last step, with the same sampling. */
  readonly test?: readonly TrainingTask[] | undefined
  /** Evaluated every `evaluateEvery` steps; chooses the best checkpoint. */
  readonly validation?: readonly TrainingTask[] | undefined
}

export interface SelfDrivenOptions {
  readonly learner: Learner
  /** The policy that `klCoefficient` holds the training near to; its weights stay as they are. */
  readonly reference?: Pick<Learner, 'logprobs'> | undefined
  /** In place of the clipped loss; nothing of it is in the configuration here. */
  readonly loss?: PolicyLoss | null | undefined
  readonly engine: Pick<TokenEngine, 'name' | 'model' | 'sampledTokens' | 'weightVersion'>
  /** Paused while weights are published; left out where the engine swaps weights by itself. */
  readonly gateway?: Pick<PolicyGateway, 'pause' | 'resume'> | undefined
  readonly runner: RolloutRunner
  readonly store: RunProgress & Pick<EpisodeReader, 'episode'>
  readonly tasks: readonly TrainingTask[]
  readonly evaluation?: EvaluationTasks | undefined
  readonly config: Pick<LocalConfig, 'training' | 'sampling' | 'limits' | 'evaluation' | 'concurrency'>
  readonly seed: number
  /** Aborting stops at once or after the update at hand; what is committed stays, and the same options resume. */
  readonly signal: AbortSignal
  /** Called with events of steps, evaluations, checkpoints and warnings; the caller keeps them in the store. */
  readonly onEvent?: ((event: RunEvent) => void) | undefined
  /** Called with what was committed, before an error rejects. */
  readonly onFailure?: ((result: SelfDrivenResult) => void) | undefined
  /** Name of the policy in requests; the engine's name by default. */
  readonly policy?: string | undefined
}

export interface SelfDrivenResult {
  readonly status: 'finished' | 'stopped' | 'failed'
  /** Steps committed in all, earlier processes of the run included. */
  readonly steps: number
  readonly resumedFromStep: number | null
  readonly before: EvaluationResult | null
  readonly after: EvaluationResult | null
  readonly greedyBefore: EvaluationResult | null
  readonly greedyAfter: EvaluationResult | null
  readonly curve: RunReport['curve']
  /** As of the end, or, where an error ended the run, as of the last commit. */
  readonly ledger: TokenLedger
  readonly episodesByStopReason: Readonly<Record<string, number>>
  readonly rollouts: number
  /** Paths inside the run. */
  readonly checkpoints: readonly string[]
  /** Of the last step that has one: the weights that `after` is about. */
  readonly lastCheckpoint: string | null
  readonly bestCheckpoint: string | null
  readonly phasesMs: Readonly<Record<string, number>>
}
