import type { AttemptAssignment, AttemptOutcome } from '../protocol/attempt.ts'
import type { OpenToolCall } from '../protocol/worker.ts'

export interface AttemptControl {
  /** Aborts when the attempt must stop. Its reason is in the outcome. */
  readonly signal: AbortSignal
  /** Called when the agent has ended, before its tools are given back. Model calls after that are not part of the attempt. */
  readonly onEnd: () => void
}

/** Runs agents. This side of an attempt has the agent, its tools and its time budget. Only plain data crosses to the other side. */
export interface AttemptExecutor {
  /** Runs the agent of an attempt once. It always resolves, whatever the agent does, with tools and states given back. */
  execute(assignment: AttemptAssignment, control: AttemptControl): Promise<AttemptOutcome>
  /**
   * Stops the clocks of all time budgets until `resume`, also those of attempts that begin meanwhile, because nothing is sampled for them.
   */
  hold(): void
  resume(): void
  /** The oldest unanswered tool call of each attempt that has one. */
  openCalls?(): readonly OpenToolCall[]
}
