import type { Message, MessageRole, ToolCall } from '@aworld-train/core'
import { badRequest, unsupportedInput } from '../../failure.ts'
import { type Fields, readArray, readObject, readOptionalString, readString } from '../read-fields.ts'
import { readText, type TextParts } from '../read-text.ts'
import { toCustomArguments } from '../tools-json.ts'

const roles: ReadonlySet<string> = new Set<MessageRole>(['system', 'developer', 'user', 'assistant', 'tool'])

const textParts: TextParts = { text: 'text', input_text: 'text', output_text: 'text', refusal: 'refusal' }

function decodeToolCall(value: unknown, path: string): ToolCall {
  const call = readObject(value, path)
  const id = readOptionalString(call['id'], `${path}.id`) ?? ''
  const type = readOptionalString(call['type'], `${path}.type`) ?? 'function'
  if (type !== 'function' && type !== 'custom') {
    throw badRequest(`"${path}.type" is "${type}"; only "function" and "custom" calls are known.`, `${path}.type`)
  }
  const at = `${path}.${type}`
  const called = readObject(call[type], at)
  const name = readString(called['name'], `${at}.name`)
  if (type === 'custom') return { id, name, arguments: toCustomArguments(readString(called['input'], `${at}.input`)) }
  return { id, name, arguments: readOptionalString(called['arguments'], `${at}.arguments`) ?? '' }
}

function decodeToolCalls(message: Fields, path: string): ToolCall[] {
  const calls = message['tool_calls']
  if (calls === undefined || calls === null) return []
  return readArray(calls, `${path}.tool_calls`).map((call, index) => decodeToolCall(call, `${path}.tool_calls[${index}]`))
}

/** Refuses parts of an assistant's message that are neither text nor calls, because they would be lost silently. */
function refuseUnreadable(message: Fields, path: string): void {
  if (message['audio'] !== undefined && message['audio'] !== null) throw unsupportedInput('audio', `${path}.audio`)
  if (message['function_call'] !== undefined && message['function_call'] !== null) {
    throw badRequest(`"${path}.function_call" is no longer served; send "tool_calls".`, `${path}.function_call`)
  }
}

/** Reads one message of a request in the neutral form. `path` names it in errors. */
export function decodeMessage(value: unknown, path: string): Message {
  const fields = readObject(value, path)
  const role = readString(fields['role'], `${path}.role`)
  if (!roles.has(role)) {
    throw badRequest(`"${path}.role" is "${role}"; it must be one of ${[...roles].join(', ')}.`, `${path}.role`)
  }
  const message: Message = { role: role as MessageRole, content: readText(fields['content'], `${path}.content`, textParts) }
  const name = readOptionalString(fields['name'], `${path}.name`)
  if (name !== undefined) message.name = name
  if (role === 'assistant') {
    const reasoning = fields['reasoning_content'] ?? fields['reasoning']
    if (typeof reasoning === 'string' && reasoning !== '') message.reasoning = readString(reasoning, `${path}.reasoning_content`)
    refuseUnreadable(fields, path)
    message.content ??= readOptionalString(fields['refusal'], `${path}.refusal`) ?? null
    const calls = decodeToolCalls(fields, path)
    if (calls.length > 0) message.toolCalls = calls
  } else if (role === 'tool') {
    message.toolCallId = readString(fields['tool_call_id'], `${path}.tool_call_id`)
  }
  if (message.content === null && role !== 'assistant') message.content = ''
  return message
}
