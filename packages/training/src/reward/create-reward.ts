import { type Reward, TrainError, type Verifier } from '@aworld-train/core'
import { type DefinedGroupReward, isDefinedGroupReward } from './define-group-reward.ts'
import { type DefinedReward, isDefinedReward, type RewardFunction } from './define-reward.ts'
import { createInlineReward, type InlineRewardOptions, refuseEpisode } from './inline-reward.ts'
import { createPythonReward } from './python-reward.ts'
import { isPythonReward, toRewardReference } from './reward-module.ts'
import { describe } from './reward-value.ts'
import { type RewardInputKind, solutionText } from './solution-text.ts'
import { createVerification } from './verification.ts'
import { createWorkerReward } from './worker-reward.ts'

/** A positional function, a `defineReward`, a `defineGroupReward`, a path `./reward.ts#name` or `./reward.py#name`, or a Reward. */
export type RewardSource = RewardFunction | DefinedReward | DefinedGroupReward | Reward | string

export interface CreateRewardOptions {
  /** Milliseconds for one call, 30,000 by default. The clock starts with the reward. */
  readonly timeoutMs?: number | undefined
  /** Heap of the worker for a reward given by path, 256 by default. For Python, memory beside its imports. */
  readonly memoryMb?: number | undefined
  /**
   * Most calls at once. By default one for a module of TypeScript, 8 for a function of Python and 32 for an asynchronous one, and any number
   * for a function of this process.
   */
  readonly concurrency?: number | null | undefined
  /** `answer` (default): the final assistant text. `full-response`: everything after the task, tool text included. */
  readonly rewardInput?: RewardInputKind | undefined
  /** Base folder for relative paths; the working directory by default. */
  readonly baseDirectory?: string | undefined
  /** The interpreter for a reward in Python; by default AWORLD_TRAIN_PYTHON, else `python3`. */
  readonly python?: string | undefined
  /** Opens the place where rewards check files. Without it `verify` fails. */
  readonly openVerifier?: (() => Promise<Verifier>) | undefined
}

/**
 * Creates a Reward from any source. A path is loaded at once, in a worker or a Python process. Throws MODULE_INVALID if it names nothing
 * callable.
 */
export async function createReward(source: RewardSource, options: CreateRewardOptions = {}): Promise<Reward> {
  const { timeoutMs = 30_000, memoryMb = 256, concurrency = null, rewardInput = 'answer', baseDirectory = '.' } = options
  const verification = createVerification(options.openVerifier)
  if (typeof source === 'string') {
    const reference = toRewardReference(source, baseDirectory)
    const settings = { reference, timeoutMs, memoryMb, concurrency, rewardInput }
    return isPythonReward(reference)
      ? await createPythonReward({ ...settings, python: options.python })
      : await createWorkerReward({ ...settings, verification })
  }
  if (typeof source === 'function') {
    return createInlineReward({
      name: source.name || 'reward',
      timeoutMs,
      concurrency,
      call: ({ task, episode, answer }, context) =>
        source(task.dataSource, solutionText(episode, rewardInput), answer.groundTruth, task.extraInfo, context),
    })
  }
  if (isDefinedReward(source)) {
    const call: InlineRewardOptions['call'] = (input, context) =>
      source.score({ ...input, verify: (request) => verification.verify(request, input, context.signal) }, context)
    return createInlineReward({ name: source.name, timeoutMs, concurrency, call, close: verification.close })
  }
  if (isDefinedGroupReward(source)) {
    const { name, kind } = source
    return { ...createInlineReward({ name, timeoutMs, concurrency, call: refuseEpisode, callGroup: source.score }), kind }
  }
  if (isReward(source)) return source
  throw new TrainError(
    'CONFIG_INVALID',
    `The reward is ${describe(source)}; pass a function, defineReward(…), or a path such as ./reward.ts#name.`,
  )
}

function isReward(source: unknown): source is Reward {
  return typeof source === 'object' && source !== null && 'score' in source && typeof source.score === 'function' && 'close' in source
}
