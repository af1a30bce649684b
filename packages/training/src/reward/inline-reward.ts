import { createSlots, orAborted, type Reward, type RewardInput, type ScoringContext, TrainError, withDeadline } from '@aworld-train/core'
import { describe, toRewardOutput } from './reward-value.ts'

export interface InlineRewardOptions {
  readonly name: string
  readonly timeoutMs: number
  /** Most calls at once; the others wait. `null` sets no limit. */
  readonly concurrency: number | null
  /** The signal of the context aborts when the call is over, however it ends. */
  readonly call: (input: RewardInput, context: ScoringContext) => unknown
  readonly close?: (() => Promise<void>) | undefined
}

/** A reward in this process. Its deadline works only while it awaits; code that never yields blocks the process. */
export function createInlineReward({ name, timeoutMs, concurrency, call, close = async () => {} }: InlineRewardOptions): Reward {
  const slots = createSlots(concurrency ?? Number.POSITIVE_INFINITY)

  async function score(input: RewardInput, context: ScoringContext): Promise<unknown> {
    const over = new AbortController()
    try {
      const value = call(input, { ...context, signal: AbortSignal.any([context.signal, over.signal]) })
      if (!isThenable(value)) return value
      return await orAborted(
        withDeadline(value, timeoutMs, () => rewardTimeout(name, timeoutMs)),
        context.signal,
      )
    } catch (error) {
      if (error instanceof TrainError || context.signal.aborted) throw error
      throw new TrainError('REWARD_FAILED', `Reward "${name}" threw on task "${input.task.id}": ${messageOf(error)}`, { cause: error })
    } finally {
      over.abort()
    }
  }

  return {
    name,
    async score(input, context) {
      await slots.take(context.signal)
      try {
        return toRewardOutput(await score(input, context), name)
      } finally {
        slots.give()
      }
    },
    close,
  }
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
