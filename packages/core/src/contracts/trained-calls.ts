import type { Message } from '@aworld-train/protocol'

/** A call to a policy, as a run may choose it for training. */
export interface TrainedCall {
  readonly agent: string
  /** Names of the tools that it offers. */
  readonly tools: readonly string[]
  /** The conversation that it asks with. */
  readonly messages: readonly Message[]
}

/** Which calls are trained: all; those with tools, where an agent has tools; or those that a function says. The others are recorded all the same. */
export type TrainedCalls = 'all' | 'with-tools' | ((call: TrainedCall) => boolean)
