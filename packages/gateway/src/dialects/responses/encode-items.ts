import type { Message, ToolCall } from '@aworld-train/core'
import type { AnswerHead, Completion } from '../../call.ts'
import { completionEnd } from '../completion-end.ts'
import { fromCustomArguments } from '../tools-json.ts'
import { toItemId } from './item-ids.ts'
import { sealReasoning } from './reasoning.ts'
import type { ResponsesCall } from './responses-call.ts'

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

export const callOf = (head: AnswerHead) => head.call as ResponsesCall

export const textPart = (text: string, logprobs: readonly object[] = []) => ({ type: 'output_text', annotations: [], logprobs, text })

export function messageItem(head: AnswerHead, index: number, content: readonly object[], status: ItemStatus) {
  return { id: toItemId('message', head.id, index), type: 'message', status, role: 'assistant', content }
}

/** Reasoning as its own text, or as a summary if the request asks for one. */
export function reasoningItem(head: AnswerHead, index: number, text: string | null, status: ItemStatus) {
  const { summary, sealed } = callOf(head).responses
  return {
    id: toItemId('reasoning', head.id, index),
    type: 'reasoning',
    summary: text !== null && summary ? [{ type: 'summary_text', text }] : [],
    ...(!summary && { content: text === null ? [] : [{ type: 'reasoning_text', text }] }),
    ...(sealed && { encrypted_content: text === null ? '' : sealReasoning(text) }),
    status,
  }
}

/** Writes a call as an item, whose arguments are empty while it is in progress. */
export function callItem(head: AnswerHead, index: number, { id, name, arguments: argumentsText }: ToolCall, status: ItemStatus) {
  const done = status !== 'in_progress'
  const own = callOf(head).responses.namespaces.own(name)
  if (head.call.customTools.has(name)) {
    const input = done ? fromCustomArguments(argumentsText) : ''
    return { id: toItemId('custom_tool_call', head.id, index), type: 'custom_tool_call', status, call_id: id, ...own, input }
  }
  return {
    id: toItemId('function_call', head.id, index),
    type: 'function_call',
    status,
    call_id: id,
    ...own,
    arguments: done ? argumentsText : '',
  }
}

/** The reason why an answer is incomplete; `null` if it is whole. */
export function incompleteReason({ finishReason }: Completion): string | null {
  const end = completionEnd(finishReason)
  if (end === 'filtered') return 'content_filter'
  return end === 'cut' ? 'max_output_tokens' : null
}

export const itemStatus = (completion: Completion): ItemStatus => (incompleteReason(completion) === null ? 'completed' : 'incomplete')

/** The items of a whole answer: reasoning, text, calls. An empty answer is one empty message. */
export function encodeItems(head: AnswerHead, message: Message, status: ItemStatus, logprobs: readonly object[]): object[] {
  const { content, reasoning, toolCalls = [] } = message
  const items: object[] = []
  const bare = toolCalls.length === 0 && !reasoning
  if (reasoning) items.push(reasoningItem(head, items.length, reasoning, content || toolCalls.length > 0 ? 'completed' : status))
  if (content || bare) items.push(messageItem(head, items.length, [textPart(content ?? '', logprobs)], status))
  for (const call of toolCalls) items.push(callItem(head, items.length, call, 'completed'))
  return items
}
