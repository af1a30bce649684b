import {
  createSlots,
  type GroupInput,
  orAborted,
  type Reward,
  type RewardInput,
  type ScoringContext,
  TrainError,
  withDeadline,
} from '@aworld-train/core'
import type { GroupValues } from './define-group-reward.ts'
import { describe, toRewardOutput } from './reward-value.ts'

export interface InlineRewardOptions {
  readonly name: string
  readonly timeoutMs: number
  /** Most calls at once; the others wait. `null` sets no limit. */
  readonly concurrency: number | null
  /** The signal of the context aborts when the call is over, however it ends. */
  readonly call: (input: RewardInput, context: ScoringContext) => unknown
  /** Of a reward that sees groups. */
  readonly callGroup?: ((input: GroupInput, context: ScoringContext) => unknown) | undefined
  readonly close?: (() => Promise<void>) | undefined
}

/** A reward in this process. Its deadline works only while it awaits; code that never yields blocks the process. */
export function createInlineReward({ name, timeoutMs, concurrency, call, callGroup, close = async () => {} }: InlineRewardOptions): Reward {
  const slots = createSlots(concurrency ?? Number.POSITIVE_INFINITY)

  async function run(taskId: string, { signal, ...context }: ScoringContext, work: (context: ScoringContext) => unknown): Promise<unknown> {
    await slots.take(signal)
    const over = new AbortController()
    try {
      const value = work({ ...context, signal: AbortSignal.any([signal, over.signal]) })
      if (!isThenable(value)) return value
      return await orAborted(
        withDeadline(value, timeoutMs, () => rewardTimeout(name, timeoutMs)),
        signal,
      )
    } catch (error) {
      if (error instanceof TrainError || signal.aborted) throw error
      throw new TrainError('REWARD_FAILED', `Reward "${name}" threw on task "${taskId}": ${messageOf(error)}`, { cause: error })
    } finally {
      over.abort()
      slots.give()
    }
  }

  return {
    name,
    score: async (input, context) => toRewardOutput(await run(input.task.id, context, (each) => call(input, each)), name),
    ...(callGroup && {
      scoreGroup: async (input: GroupInput, context: ScoringContext) =>
        (await run(input.task.id, context, (each) => callGroup(input, each))) as GroupValues,
    }),
    close,
  }
}

/** Refuses to score an episode alone by a reward that sees groups. */
export function refuseEpisode(): never {
  throw new TrainError('REWARD_INVALID', 'This reward compares the rollouts of a group, and has no score for one of them.')
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

export function rewardTimeout(name: string, timeoutMs: number): TrainError {
  return new TrainError(
    'REWARD_TIMEOUT',
    `Reward "${name}" did not return within ${timeoutMs} ms; make it return sooner, or raise reward.timeoutMs.`,
  )
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : describe(error))
