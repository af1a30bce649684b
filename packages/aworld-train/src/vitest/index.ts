import { expect } from 'vitest'
import { toBeTrainable } from './to-be-trainable.ts'
import { toCall } from './to-call.ts'
import { type ExpectedReward, toEarn } from './to-earn.ts'
import { type ComparedReport, toImproveOn } from './to-improve-on.ts'
import { type EpisodeBounds, toStayWithin } from './to-stay-within.ts'

export { type EvaluateOptions, type EvaluationWithEpisodes, evaluate } from './evaluate.ts'
export { type OnceTraining, type RunOnceOptions, runOnce } from './run-once.ts'
export type { Script, ScriptedAnswer } from './scripted-policy.ts'
export type { ComparedReport, EpisodeBounds, ExpectedReward }

/** Matchers that the import of this module adds to Vitest's `expect`. */
interface TrainingMatchers<R> {
  /**
   * For an episode: it can be trained, with every sampled token in a sample or explained. For a list of episodes: each can, and the rewards
   * of each group differ.
   */
  toBeTrainable(): R
  /** For an episode: its reward. For a report: its mean reward. */
  toEarn(reward: ExpectedReward): R
  /** For an episode: a tool was called, with arguments equal to `args` if they are given. `args` may contain asymmetric matchers. */
  toCall(name: string, args?: unknown): R
  /** For an episode, or all episodes of a report: they stay within these bounds. */
  toStayWithin(bounds: EpisodeBounds): R
  /** For a report: its mean reward exceeds that of another by more than chance, with the 95 % interval of the difference above 0. */
  toImproveOn(report: ComparedReport): R
}

declare module 'vitest' {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> extends TrainingMatchers<R> {}
}

expect.extend({ toBeTrainable, toEarn, toCall, toStayWithin, toImproveOn })
