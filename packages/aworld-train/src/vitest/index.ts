import { expect } from 'vitest'
import { toBeTrainable } from './to-be-trainable.ts'
import { toCall } from './to-call.ts'
import { type ExpectedReward, toEarn } from './to-earn.ts'
import { type ComparedReport, toImproveOn } from './to-improve-on.ts'
import { type EpisodeBounds, toStayWithin } from './to-stay-within.ts'

export { type EvaluateOptions, type EvaluationWithEpisodes, evaluate } from './evaluate.ts'
export { type OnceTraining, type RunOnceOptions, runOnce } from './run-once.ts'
export type { ScriptedAnswer } from './scripted-policy.ts'
export type { ComparedReport, EpisodeBounds, ExpectedReward }

/** Importing this module adds these matchers to Vitest's `expect`. */
interface TrainingMatchers<R> {
  /** Of an episode: it can be trained, with every sampled token in a sample or explained. Of a list of episodes: each can, and the rewards of each group differ. */
  toBeTrainable(): R
  /** Of an episode: its reward. Of a report: its mean reward. */
  toEarn(reward: ExpectedReward): R
  /** Of an episode: a tool was called, with arguments equal to `args` where they are named; asymmetric matchers may stand in them. */
  toCall(name: string, args?: unknown): R
  /** Of an episode, or of all episodes of a report: they take no more than this. */
  toStayWithin(bounds: EpisodeBounds): R
  /** Of a report: its mean reward is above that of another by more than chance, with the 95 % interval of the difference above 0. */
  toImproveOn(report: ComparedReport): R
}

declare module 'vitest' {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> extends TrainingMatchers<R> {}
}

expect.extend({ toBeTrainable, toEarn, toCall, toStayWithin, toImproveOn })
