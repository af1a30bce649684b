import type { Message, ToolDefinition } from '@aworld-train/core'
import { loadChatModel } from '../load-chat-model.ts'
import { type ShapeName, writeShape } from '../template-shapes.test-support.ts'
import type { ChatModel, Conversation, HistoryMode, PreparedPrompt } from '../types.ts'
import { type ModelFiles, writeModel } from '../write-model.test-support.ts'

export const lookup: ToolDefinition = { name: 'lookup', parameters: { type: 'object', properties: { name: { type: 'string' } } } }
export const add: ToolDefinition = { name: 'add', parameters: { type: 'object', properties: {} } }
export const now = new Date(2026, 6, 4)

/** Loads the model of a shape of template. */
export async function shape(name: ShapeName, history: HistoryMode = 'loop'): Promise<ChatModel> {
  await using folder = await writeShape(name)
  return await loadChatModel({ directory: folder.directory, stopTokenIds: folder.stopTokenIds, history })
}

/** A model with a template of the test's own and the tokens of ChatML. */
export async function chatMlLike(template: string, history: HistoryMode = 'template', files: Partial<ModelFiles> = {}): Promise<ChatModel> {
  const special = ['<|im_start|>', '<|im_end|>']
  await using folder = await writeModel({ template, special, eosToken: '<|im_end|>', ends: ['<|im_end|>'], ...files })
  return await loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|im_end|>')], history })
}

export const user = (content: string): Message => ({ role: 'user', content })
export const assistant = (content: string | null, more: Partial<Message> = {}): Message => ({ role: 'assistant', content, ...more })
export const call = (id: string, args = '{"name": "iron"}', name = 'lookup') => ({ id, name, arguments: args })
export const result = (toolCallId: string, content: string): Message => ({ role: 'tool', toolCallId, content })

export interface Sampled {
  readonly text: string
  readonly message: Message
  readonly truncated?: boolean
  readonly tools?: readonly ToolDefinition[]
}

/** Prepares a prompt, records `text` as sampled, and returns the prompt. */
export function turn(
  model: ChatModel,
  conversation: Conversation,
  index: number,
  messages: readonly Message[],
  sampled: Sampled,
): PreparedPrompt {
  const prepared = conversation.prepare({ messages, tools: sampled.tools ?? [] })
  const { text, message, truncated = false } = sampled
  conversation.record(index, prepared, { tokenIds: model.encode(text), message, truncated })
  return prepared
}

/** The text that a continuation appended to its parent. */
export function appended(model: ChatModel, prepared: PreparedPrompt, parent: PreparedPrompt, sampledText: string): string {
  const from = parent.promptTokenIds.length + model.encode(sampledText).length
  return model.decode(prepared.promptTokenIds.subarray(from))
}
