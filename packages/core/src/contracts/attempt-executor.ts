import type { AttemptAssignment, AttemptOutcome } from '../protocol/attempt.ts'
import type { AttemptName, OpenToolCall } from '../protocol/worker.ts'

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
   * Stops the clock of an attempt until `resume`, or without a name the clocks of all, also of attempts that begin meanwhile, because nothing is
   * sampled for them. Both holds must end before a clock goes on.
   */
  hold(attempt?: AttemptName): void
  resume(attempt?: AttemptName): void
  /** The oldest unanswered tool call of each attempt that has one. */
  openCalls?(): readonly OpenToolCall[]
}
