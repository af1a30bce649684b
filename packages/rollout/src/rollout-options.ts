import type {
  AnswerKey,
  AttemptExecutor,
  AttemptName,
  OpenToolCall,
  PolicyGateway,
  Reward,
  RolloutLimits,
  RolloutRunner,
  RolloutWriter,
  RunEvent,
  StopReason,
} from '@aworld-train/core'
import type { RewardModels } from './ask-models.ts'
import type { AttemptExecutorOptions } from './attempt-executor.ts'
import type { ScoreUnfinished } from './reward-decision.ts'
import type { OpenRollouts } from './rollout-table.ts'
import type { RolloutWorkers, WorkerSource } from './rollout-workers.ts'

export interface RolloutRunnerOptions extends AttemptExecutorOptions {
  readonly gateway: PolicyGateway
  /** Runs agents in this process. */
  readonly executor?: AttemptExecutor | undefined
  /** Workers that run the agents. With them, no agent runs in this process. */
  readonly workers?: WorkerSource | undefined
  /** `null`: episodes are not scored. */
  readonly reward: Reward | null
  /** The frozen models that the reward may ask. Default: none. */
  readonly rewardModels?: Omit<RewardModels, 'gateway'> | undefined
  /** Seed of the run, for what a reward of groups draws. Default 0. */
  readonly seed?: number | undefined
  readonly store: RolloutWriter
  /** Called only when an episode is scored. */
  readonly answerKey: (taskId: string) => AnswerKey
  /** Most rollouts that run at once, over all workers. The rest queue, and queueing costs no budget. Default 32. */
  readonly concurrency?: number | undefined
  /** Limits of requests that set none. `timeoutMs` is 120,000 where neither sets it. Each attempt has the whole budget. */
  readonly limits?: RolloutLimits | undefined
  /** Most new attempts after retryable failures of environment, policy or gateway. Default 2. */
  readonly retries?: number | undefined
  /** A rollout fails with the loss of this many workers that it had for itself while no other worker was lost. Default 3. */
  readonly maxLosses?: number | undefined
  /** Reward of an episode that the policy kept from an answer; 0 teaches the policy to avoid that. Default `zero`. */
  readonly scoreUnfinished?: ScoreUnfinished | undefined
  /**
   * Whether an agent that answers without a call of the gateway has failed, because nothing of it can be trained. With `false` its answer is
   * scored, as that of an agent that asks its model by a client of its own. Default `true`.
   */
  readonly requiresModelCall?: boolean | undefined
  readonly onEvent?: ((event: RunEvent) => void) | undefined
}

export interface RolloutCounts {
  readonly queued: number
  readonly running: number
  /** Results of this runner, failed ones included. Results that the store had already are not counted. */
  readonly finished: number
  readonly episodesByStopReason: Readonly<Partial<Record<StopReason, number>>>
  /** Tool calls that agents made. Failed ones and those of superseded attempts are included. */
  readonly toolCalls: number
  /** Tool calls in the answers of models. */
  readonly askedToolCalls: number
  readonly toolErrors: number
  /** Tool calls that no server answered: functions, agents called as tools, calls that name no tool. */
  readonly functionCalls: number
  /** New attempts after a retryable failure. */
  readonly retries: number
  /** Attempts that were lost with their workers. */
  readonly lostAttempts: number
  /** Tokens of attempts that left no result, because they were tried again or cancelled. */
  readonly supersededTokens: number
}

/** An attempt that has no result yet. */
export interface RunningAttempt extends AttemptName {
  /** `null` for this process. */
  readonly worker: string | null
  readonly runningMs: number
  /** Its oldest tool call without an answer. */
  readonly call: OpenToolCall | null
}

/**
 * A runner that is coordinated by this process. `run` rejects with ROLLOUT_CANCELLED when its signal aborts or the runner closes; the
 * rollout then has no result and runs again on resume. It rejects with ROLLOUT_CONFLICT for a key that is under way, with the store's
 * error when nothing can be kept, with the error of policy or gateway when these failed, and with the error of the workers when none can
 * be had. Every other end resolves.
 */
export interface InProcessRolloutRunner extends RolloutRunner {
  counts(): RolloutCounts
  slots(): number
  supersededTokens(policy?: string): number
  /** The attempt that has run longest; `null` where none runs. */
  oldest(): RunningAttempt | null
  /** Its rollouts without a result. */
  readonly rollouts: OpenRollouts
  /** The workers that run its agents: this process, or those that have greeted. */
  readonly workers: RolloutWorkers
  /** Cancels every rollout and resolves when none is left. */
  close(): Promise<void>
}
