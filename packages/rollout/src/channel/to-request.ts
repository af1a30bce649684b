import {
  type ChannelHello,
  type ChannelSubmit,
  parseChannelKey,
  type RolloutRequest,
  TrainError,
  type TrainingTask,
} from '@aworld-train/core'

export interface RequestOptions {
  readonly hello: ChannelHello
  readonly task: TrainingTask
  readonly kind: string | undefined
  /** Name of the engine that the connection serves. */
  readonly policy: string
  readonly rolloutTimeoutMs: number | null
  /** Longest answer of one model call, in tokens. */
  readonly maxCompletionTokens?: number | null | undefined
}

/** Turns a submission into a rollout: the trainer's sampling, its lengths as limits, its deadline as the budget of an attempt. */
export function toRolloutRequest(submit: ChannelSubmit, options: RequestOptions): RolloutRequest {
  const { hello, task, kind, policy, rolloutTimeoutMs } = options
  const maxCompletionTokens = options.maxCompletionTokens ?? Number.POSITIVE_INFINITY
  const { key, uid, sample, step, partition, sampling, deadlineMs } = submit
  const { maxResponseTokens } = hello.limits
  const timeoutMs = Math.min(deadlineMs ?? Number.POSITIVE_INFINITY, rolloutTimeoutMs ?? Number.POSITIVE_INFINITY)
  return {
    version: 1,
    key,
    task,
    group: uid,
    sample,
    split: partition === 'val' ? 'test' : 'train',
    ...(step >= 0 && { step }),
    ...(kind !== undefined && { kind }),
    policy,
    sampling: {
      temperature: sampling.temperature,
      topP: sampling.topP,
      topK: Math.max(0, sampling.topK),
      maxTokens: Math.min(maxResponseTokens, maxCompletionTokens),
      stop: [],
      seed: 0,
    },
    limits: { maxResponseTokens, ...(Number.isFinite(timeoutMs) && { timeoutMs }) },
  }
}

/** Throws ROLLOUT_INVALID for a key that does not consist of its parts and of the run and incarnation that said hello. */
export function requireOwnKey({ key, partition, step, uid, sample }: ChannelSubmit, { run, incarnation }: ChannelHello): void {
  const parts = parseChannelKey(key)
  const expected = { run, incarnation, partition, step, uid, sample }
  const wrong =
    parts === null ? ['its form'] : (Object.keys(expected) as (keyof typeof expected)[]).filter((part) => parts[part] !== expected[part])
  if (wrong.length === 0) return
  throw new TrainError(
    'ROLLOUT_INVALID',
    `Key "${key.slice(0, 200)}" does not fit its submission: ${wrong.join(', ')}. A key is run/incarnation/partition/step/uid/sample, each percent-encoded.`,
  )
}
