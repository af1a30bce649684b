import { isRecord, type Message, MessageRole } from '@aworld-train/core'

/** Parses text that holds a JSON list or object, as CSV cells do; returns anything else as it is. */
export function parseMaybeJson(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

/** Parses a prompt that is the text of a JSON list of messages, as in CSV cells. All other text stays text, whatever it looks like. */
export function parseMessages(prompt: unknown): unknown {
  const value = parseMaybeJson(prompt)
  const isList = Array.isArray(value) && value.length > 0 && value.every((message) => isRecord(message) && 'role' in message)
  return typeof prompt === 'string' && !isList ? prompt : value
}

/** Converts chat messages in OpenAI's form or our own; returns a sentence that describes the error if it cannot. */
export function toMessages(value: unknown): Message[] | string {
  if (!Array.isArray(value)) return 'the prompt is neither text nor a list of messages.'
  if (value.length === 0) return 'the prompt is an empty list of messages.'
  const messages: Message[] = []
  for (const [index, item] of value.entries()) {
    const message = toMessage(item)
    if (typeof message === 'string') return `message ${index + 1} of the prompt ${message}`
    messages.push(message)
  }
  if (!messages.some(({ role, content }) => role === 'user' && content?.trim())) return 'the prompt has no message of the user with text.'
  if (messages.at(-1)?.role === 'assistant')
    return 'the prompt ends with a message of the assistant, which would tell the agent its answer; take it out, and put what it says in the column "answer".'
  return messages
}

function toMessage(item: unknown): Message | string {
  if (!isRecord(item)) return 'is not an object with "role" and "content".'
  const role = MessageRole.safeParse(item['role'])
  if (!role.success) return `has the role ${JSON.stringify(item['role'])}; use ${MessageRole.options.join(', ')}.`
  const content = toText(item['content'])
  if (content === undefined) return 'has a content that is not text.'
  const calls = item['tool_calls'] ?? item['toolCalls']
  const toolCallId = item['tool_call_id'] ?? item['toolCallId']
  return {
    role: role.data,
    content,
    ...(typeof item['name'] === 'string' ? { name: item['name'] } : {}),
    ...(typeof toolCallId === 'string' ? { toolCallId } : {}),
    ...(Array.isArray(calls) && calls.length > 0 ? { toolCalls: calls.map(toToolCall) } : {}),
  }
}

/** Text of a content, which is a string, `null`, or text parts. */
function toText(content: unknown): string | null | undefined {
  if (content === null || content === undefined) return null
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return undefined
  const texts = content.map((part) => (isRecord(part) && typeof part['text'] === 'string' ? part['text'] : undefined))
  return texts.includes(undefined) ? undefined : texts.join('')
}

function toToolCall(call: unknown, index: number): { id: string; name: string; arguments: string } {
  const record = isRecord(call) ? call : {}
  const target = isRecord(record['function']) ? record['function'] : record
  const args = target['arguments'] ?? {}
  return {
    id: typeof record['id'] === 'string' ? record['id'] : `call-${index}`,
    name: String(target['name'] ?? ''),
    arguments: typeof args === 'string' ? args : JSON.stringify(args),
  }
}
