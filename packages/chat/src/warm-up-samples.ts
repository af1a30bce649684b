import type { Message, ToolDefinition, TrainingSample } from '@aworld-train/core'
import type { ChatModel } from './types.ts'

export interface WarmUpSampleOptions {
  readonly chat: ChatModel
  /** A whole conversation, including its system message. Every assistant message in it is learned. */
  readonly messages: readonly Message[]
  /** Tools as the agent declares them; for a function tool, its `definition`. */
  readonly tools?: readonly ToolDefinition[] | undefined
  /** Name of the samples in error messages. Default: `demonstration`. */
  readonly id?: string | undefined
}

interface MaskedTokens {
  readonly tokenIds: Int32Array
  readonly lossMask: Uint8Array
}

/**
 * Turns a demonstration into samples for `trainSft`: prompts as the gateway renders them for the policy, each followed by the ids of the
 * next assistant message. The loss mask is 1 on those ids, including the stop token. There is one sample, and another one for each place
 * where the template rewrites earlier messages. All arrays of a sample have the length of `tokenIds`.
 */
export function toWarmUpSamples({ chat, messages, tools = [], id = 'demonstration' }: WarmUpSampleOptions): TrainingSample[] {
  const conversation = chat.createConversation()
  const parts: MaskedTokens[] = []
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'assistant') continue
    const prepared = conversation.prepare({ messages: messages.slice(0, index), tools })
    const completion = chat.toCompletion({ messages: messages.slice(0, index + 1), tools })
    conversation.record(index, prepared, { tokenIds: completion, message })
    const { promptTokenIds, parent } = prepared
    const tokenIds = new Int32Array(promptTokenIds.length + completion.length)
    tokenIds.set(promptTokenIds)
    tokenIds.set(completion, promptTokenIds.length)
    const lossMask = new Uint8Array(tokenIds.length).fill(1, promptTokenIds.length)
    if (parent !== null) lossMask.set(parts.pop()?.lossMask ?? [])
    parts.push({ tokenIds, lossMask })
  }
  return parts.map(({ tokenIds, lossMask }, sample) => ({
    version: 2,
    tokenIds,
    lossMask,
    rolloutLogprobs: new Float32Array(tokenIds.length),
    weightVersions: [],
    reward: 0,
    advantage: null,
    group: id,
    agent: 'demonstration',
    trajectory: 'demonstration',
    policy: 'demonstration',
    provenance: { rollout: id, attempt: 0, taskId: id, sample, turns: [] },
  }))
}
