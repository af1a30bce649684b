import type { AttemptExecutor, PolicyGateway, Reward, RolloutRunner, RolloutWriter } from '@aworld-train/core'
import type { AnswerKey, AttemptName, OpenToolCall, RolloutLimits, RunEvent, StopReason } from '@aworld-train/protocol'
import type { AttemptExecutorOptions } from './attempt-executor.ts'
import type { ScoreUnfinished } from './reward-decision.ts'
import type { RolloutWorkers, WorkerSource } from './rollout-workers.ts'

export interface RolloutRunnerOptions extends AttemptExecutorOptions {
  readonly gateway: PolicyGateway
  /** Runs agents in this process. */
  readonly executor?: AttemptExecutor | undefined
  /** Workers that run the agents; none runs in this process then. */
  readonly workers?: WorkerSource | undefined
  /** `null`: episodes are not scored. */
  readonly reward: Reward | null
  readonly store: RolloutWriter
  /** Asked only when an episode is scored. */
  readonly answerKey: (taskId: string) => AnswerKey
  /** Rollouts that run at once, on whatever worker; the rest queue, and queueing costs no budget. Default 32. */
  readonly concurrency?: number | undefined
  /** Limits of requests that set none; `timeoutMs` is 120,000 where neither sets it. Each attempt has the whole budget. */
  readonly limits?: RolloutLimits | undefined
  /** New attempts after a retryable failure of environment or policy. Default 2. */
  readonly retries?: number | undefined
  /** Workers that a rollout may lose while it has them for itself and no other is lost; with the last of them it fails. Default 3. */
  readonly maxLosses?: number | undefined
  /** Whether an episode that the policy kept from an answer gets a reward of 0, so that it learns not to, or none. Default `zero`. */
  readonly scoreUnfinished?: ScoreUnfinished | undefined
  readonly onEvent?: ((event: RunEvent) => void) | undefined
}

export interface RolloutCounts {
  readonly queued: number
  readonly running: number
  /** Results of this runner, failed ones too; not those that the store had already. */
  readonly finished: number
  readonly episodesByStopReason: Readonly<Partial<Record<StopReason, number>>>
  /** Tool calls as agents made them, failed ones and those of superseded attempts too. */
  readonly toolCalls: number
  /** Tool calls in the answers that models gave them. */
  readonly askedToolCalls: number
  readonly toolErrors: number
  /** How many of the tool calls were answered in this process: functions, agents called as tools, calls that name no tool. */
  readonly functionCalls: number
  /** New attempts after a retryable failure. */
  readonly retries: number
  /** Attempts that were lost with their workers. */
  readonly lostAttempts: number
  /** Tokens of attempts without a result, which were tried again or cancelled. */
  readonly supersededTokens: number
}

/** An attempt without a result. */
export interface RunningAttempt extends AttemptName {
  /** `null` for this process. */
  readonly worker: string | null
  readonly runningMs: number
  /** Its oldest tool call without an answer. */
  readonly call: OpenToolCall | null
}

/**
 * Runs rollouts in this process. `run` rejects with ROLLOUT_CANCELLED when its signal aborts or the runner closes (the
 * rollout then has no result and runs again on resume), and with the store's error when nothing can be kept; else it resolves.
 */
export interface InProcessRolloutRunner extends RolloutRunner {
  counts(): RolloutCounts
  slots(): number
  supersededTokens(): number
  /** The attempt that has run longest; `null` where none runs. */
  oldest(): RunningAttempt | null
  /** Where its agents run: this process, and those that greeted. */
  readonly workers: RolloutWorkers
  /** Cancels what is queued or running and resolves when nothing is. */
  close(): Promise<void>
}
