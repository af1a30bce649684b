import type { AttemptAssignment, AttemptOutcome, OpenToolCall } from '@aworld-train/protocol'

export interface AttemptControl {
  /** Aborts when the attempt is to stop; its reason is in the outcome. */
  readonly signal: AbortSignal
  /** Called when the agent has ended, before its tools are given back: what it asks its model for after that is no part of the attempt. */
  readonly onEnd: () => void
}

/** Runs agents: the side of an attempt that has the agent, its tools and its time budget. What crosses it is plain data. */
export interface AttemptExecutor {
  /** Runs the agent of an attempt once. Whatever the agent does, this resolves, with tools and states given back. */
  execute(assignment: AttemptAssignment, control: AttemptControl): Promise<AttemptOutcome>
  /** Stops the clocks of all time budgets, also of attempts that begin meanwhile, until `resume`: nothing is sampled for them. */
  hold(): void
  resume(): void
  /** The oldest tool call without an answer of each attempt that has one. */
  openCalls?(): readonly OpenToolCall[]
}
