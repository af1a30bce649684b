import type { Message } from '../protocol/message.ts'

/** A call to a policy, by which a run may choose it for training. */
export interface TrainedCall {
  readonly agent: string
  /** Names of the tools that it offers. */
  readonly tools: readonly string[]
  /** Messages of the call. */
  readonly messages: readonly Message[]
}

/**
 * The calls that are trained: all; those with tools, if an agent has tools; or those that a function chooses. All other calls are recorded
 * too.
 */
export type TrainedCalls = 'all' | 'with-tools' | ((call: TrainedCall) => boolean)
