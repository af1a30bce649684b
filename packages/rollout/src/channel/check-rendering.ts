import type { ChatModel } from '@aworld-train/chat'
import { type ChannelCheck, isRecord, type Message, MessageRole, type ToolCall, ToolDefinition, TrainError } from '@aworld-train/core'

type Plain = Readonly<Record<string, unknown>>

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

function contentOf(content: unknown): string | null {
  if (!Array.isArray(content)) return textOf(content) ?? null
  return content.map((part) => (isRecord(part) ? (textOf(part['text']) ?? '') : '')).join('')
}

function toToolCall(call: unknown, index: number): ToolCall {
  const record = isRecord(call) ? call : {}
  const target = isRecord(record['function']) ? record['function'] : record
  const { arguments: callArguments = {} } = target
  return {
    id: textOf(record['id']) ?? `call-${index}`,
    name: textOf(target['name']) ?? '',
    arguments: typeof callArguments === 'string' ? callArguments : JSON.stringify(callArguments),
  }
}

/** Converts a message in OpenAI's form to ours. */
function toMessage(message: Plain): Message {
  const role = MessageRole.safeParse(message['role'])
  if (!role.success)
    throw new TrainError('CHANNEL_INVALID', `The check of the hello has a message of role ${JSON.stringify(message['role'])}.`)
  const calls = message['tool_calls'] ?? message['toolCalls']
  const toolCallId = textOf(message['tool_call_id'] ?? message['toolCallId'])
  const reasoning = textOf(message['reasoning_content'] ?? message['reasoning'])
  const name = textOf(message['name'])
  return {
    role: role.data,
    content: contentOf(message['content']),
    ...(reasoning !== undefined && { reasoning }),
    ...(Array.isArray(calls) && calls.length > 0 && { toolCalls: calls.map(toToolCall) }),
    ...(toolCallId !== undefined && { toolCallId }),
    ...(name !== undefined && { name }),
  }
}

function toTool(tool: unknown): ToolDefinition {
  const record = isRecord(tool) ? tool : {}
  return ToolDefinition.parse(pick(isRecord(record['function']) ? record['function'] : record))
}

const pick = ({ name, description, parameters = {} }: Plain) => ({ name, ...(description !== undefined && { description }), parameters })

/** Most ids that an error shows after a difference. */
const shown = 12

/** Renders the trainer client's conversation and compares ids. Throws TEMPLATE_MISMATCH at the first that differs. */
export function checkRendering(chat: ChatModel, { messages, tools }: ChannelCheck, renderedIds: Int32Array): void {
  const isOpenAi = tools?.every((tool: unknown) => isRecord(tool) && isRecord(tool['function'])) ?? false
  const { promptTokenIds } = chat.createConversation().prepare({
    messages: messages.map((message) => toMessage(message)),
    tools: (tools ?? []).map(toTool),
    ...(tools && isOpenAi && { toolsJson: JSON.stringify(tools) }),
  })
  const length = Math.max(promptTokenIds.length, renderedIds.length)
  for (let index = 0; index < length; index++) {
    if (promptTokenIds[index] === renderedIds[index]) continue
    const tail = (ids: Int32Array) => {
      const part = ids.subarray(Math.max(0, index - 2), index + shown)
      return `[${part.join(', ')}] ${JSON.stringify(chat.decode(part, { skipSpecialTokens: false }))}`
    }
    throw new TrainError(
      'TEMPLATE_MISMATCH',
      `The trainer and the rollout service render a conversation differently: of ${renderedIds.length} and ${promptTokenIds.length} ids the first that differs is ${index}. The trainer has … ${tail(renderedIds)}, the service … ${tail(promptTokenIds)}. Give both the same tokenizer and template.`,
      { details: { index } },
    )
  }
}
