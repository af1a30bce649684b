import type { PreparedPrompt } from '@aworld-train/chat'
import type { ModelDescription } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import type { ModelCall } from '../call.ts'
import { add, type Counters } from '../counters.ts'
import { type HeldRecord, markDelivered } from '../session-state.ts'

/** Match and render: the prompt of a call, as the continuation of a recorded turn or as a branch. Throws POLICY_CONTEXT_OVERFLOW. */
export function prepare({ turns, conversation }: HeldRecord, call: ModelCall, model: ModelDescription, counters: Counters): PreparedPrompt {
  const { messages, tools, toolsJson } = call
  const prepared = conversation.prepare({ messages, tools, toolsJson })
  const { length } = prepared.promptTokenIds
  if (length >= model.contextLength) {
    const message = `The conversation has ${length} tokens, the context of "${model.name}" ${model.contextLength}; shorten it, or use a model with a longer context.`
    throw new TrainError('POLICY_CONTEXT_OVERFLOW', message, { details: { stopReason: 'context-overflow', param: 'messages' } })
  }
  markDelivered(turns, prepared.matched)
  if (prepared.parent !== null) counters.continuations++
  for (const reason of prepared.branchReasons) add(counters.branches, reason)
  for (const kind in prepared.tolerated) add(counters.tolerated, kind, prepared.tolerated[kind])
  return prepared
}
