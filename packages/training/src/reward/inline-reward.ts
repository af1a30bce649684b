import { orAborted, type Reward, type RewardInput, TrainError, withDeadline } from '@aworld-train/core'
import { describe, toRewardOutput } from './reward-value.ts'

export interface InlineRewardOptions {
  readonly name: string
  readonly timeoutMs: number
  /** The signal aborts when the call is over, however it ends. */
  readonly call: (input: RewardInput, signal: AbortSignal) => unknown
  readonly close?: (() => Promise<void>) | undefined
}

/** A reward in this process. Its deadline works only while it awaits; code that never yields blocks the process. */
export function createInlineReward({ name, timeoutMs, call, close = async () => {} }: InlineRewardOptions): Reward {
  return {
    name,
    async score(input, signal) {
      signal.throwIfAborted()
      let value: unknown
      const over = new AbortController()
      try {
        value = call(input, over.signal)
        if (isThenable(value))
          value = await orAborted(
            withDeadline(value, timeoutMs, () => rewardTimeout(name, timeoutMs)),
            signal,
          )
      } catch (error) {
        if (error instanceof TrainError || signal.aborted) throw error
        throw new TrainError('REWARD_FAILED', `Reward "${name}" threw on task "${input.task.id}": ${messageOf(error)}`, { cause: error })
      } finally {
        over.abort()
      }
      return toRewardOutput(value, name)
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
