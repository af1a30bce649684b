import { type GroupInput, type Reward, type ScoringContext, TrainError } from '@aworld-train/core'
import type { GroupValues } from './define-group-reward.ts'
import { rewardTimeout } from './inline-reward.ts'
import { type CallEnd, createRewardCalls } from './reward-calls.ts'
import { toRewardOutput } from './reward-value.ts'
import type { RewardWorkerAnswer } from './reward-worker.ts'
import { startWorker, type WorkerProcessOptions, type WorkerValues } from './worker-process.ts'

export interface WorkerRewardOptions extends WorkerProcessOptions {
  readonly timeoutMs: number
  /** Most calls at once; `null`: one. */
  readonly concurrency: number | null
}

/**
 * A reward in a worker thread of its own. A call that blocks the thread beyond its time, or takes too much memory, ends the worker
 * (REWARD_TIMEOUT, REWARD_FAILED), and the next call gets a new one. Throws MODULE_INVALID if the module names no reward.
 */
export async function createWorkerReward(options: WorkerRewardOptions): Promise<Reward> {
  const { reference, timeoutMs, concurrency } = options
  const first = await startWorker(options)
  const { name, kind } = first
  const calls = createRewardCalls({ start: () => startWorker(options), first, limit: concurrency ?? 1, timeoutMs })
  let closed = false

  function toOutcome(end: CallEnd<RewardWorkerAnswer>, { task }: WorkerValues['input']): unknown {
    const failed = (why: string, cause?: unknown, error?: Extract<RewardWorkerAnswer, { kind: 'threw' }>['error']) => {
      const message = `Reward "${name}" failed on task "${task.id}": ${why.replace(/\.$/, '')}.`
      return new TrainError(error?.code ?? 'REWARD_FAILED', message, { cause, ...(error?.details && { details: error.details }) })
    }
    switch (end.kind) {
      case 'value':
        return end.value
      case 'unsendable':
        return new TrainError(
          'REWARD_INVALID',
          `Reward "${name}" returned ${end.description}; return a finite number, or { reward, scores, agents }.`,
        )
      case 'threw':
        return failed(end.message, end.stack, end.error)
      case 'timeout':
      case 'unresponsive':
        return rewardTimeout(name, timeoutMs)
      case 'died':
        if (end.reason !== 'exit') return failed(end.why)
        return new TrainError('REWARD_PROCESS_DIED', `The worker of reward "${name}" ended on task "${task.id}": ${end.why}.`)
      case 'cancelled':
        return failed('it was cancelled')
      case 'closed':
        return new TrainError('REWARD_FAILED', `Reward "${name}" was closed before it scored task "${task.id}".`)
    }
  }

  async function score(input: WorkerValues['input'], { signal, endpoints }: ScoringContext): Promise<unknown> {
    signal.throwIfAborted()
    if (closed) throw new TrainError('REWARD_FAILED', `Reward "${name}" of ${reference.path} is closed.`)
    const outcome = await calls.call({ values: { input, endpoints }, signal, toOutcome: (end) => toOutcome(end, input) })
    if (outcome instanceof TrainError) throw outcome
    return outcome
  }

  return {
    name,
    kind,
    score: async (input, context) => toRewardOutput(await score(input, context), name),
    ...(kind !== 'episode' && {
      scoreGroup: async (input: GroupInput, context: ScoringContext) => (await score(input, context)) as GroupValues,
    }),
    async close() {
      closed = true
      await calls.close()
      await options.verification.close()
    },
  }
}
