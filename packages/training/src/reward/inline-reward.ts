import { orAborted, type Reward, type RewardInput, TrainError, withDeadline } from '@aworld-train/core'
import { describe, toRewardOutput } from './reward-value.ts'

export interface InlineRewardOptions {
  readonly name: string
  readonly timeoutMs: number
  readonly call: (input: RewardInput) => unknown
}

/** A reward in this process. Its deadline works only while it awaits; code that never yields blocks the process. */
export function createInlineReward({ name, timeoutMs, call }: InlineRewardOptions): Reward {
  return {
    name,
    async score(input, signal) {
      signal.throwIfAborted()
      let value: unknown
      try {
        value = call(input)
        if (isThenable(value))
          value = await orAborted(
            withDeadline(value, timeoutMs, () => rewardTimeout(name, timeoutMs)),
            signal,
          )
      } catch (error) {
        if (error instanceof TrainError || signal.aborted) throw error
        throw new TrainError('REWARD_FAILED', `Reward "${name}" threw on task "${input.task.id}": ${messageOf(error)}`, { cause: error })
      }
      return toRewardOutput(value, name)
    },
    async close() {},
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
