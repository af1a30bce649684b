import type { Message } from '@aworld-train/core'
import { unsupportedInput } from '../../failure.ts'
import { itemTexts, memberText } from '../member-text.ts'
import { checkDepth, type Fields, readArray, readFlag, readObject, readString } from '../read-fields.ts'

/** Blocks of content with their paths; a string is one text block. */
function readBlocks(content: unknown, path: string): { readonly block: Fields; readonly type: string; readonly at: string }[] {
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return content === '' ? [] : [{ block: { text: content }, type: 'text', at: path }]
  return readArray(content, path).map((value, index) => {
    const at = `${path}[${index}]`
    const block = readObject(value, at)
    return { block, type: readString(block['type'], `${at}.type`), at }
  })
}

/** Joins the text of content that may hold nothing else. */
export function decodeText(content: unknown, path: string): string {
  let text = ''
  for (const { block, type, at } of readBlocks(content, path)) {
    if (type !== 'text') throw unsupportedInput(type, `${at}.type`)
    text += readString(block['text'], `${at}.text`)
  }
  return text
}

/** Reads a tool result. An error is an answer too: the policy sees its text, or the word "error" if it has none. */
function decodeResult(block: Fields, at: string): Message {
  const content = decodeText(block['content'], `${at}.content`)
  const failed = readFlag(block['is_error'], `${at}.is_error`)
  return {
    role: 'tool',
    content: content === '' && failed ? 'error' : content,
    toolCallId: readString(block['tool_use_id'], `${at}.tool_use_id`),
  }
}

/**
 * Reads the content of a user's message. Each tool result becomes a message of its own, and so does the text between
 * them, in the order of the blocks.
 */
export function decodeUserContent(content: unknown, path: string): Message[] {
  const messages: Message[] = []
  let text: string | null = null
  const flush = () => {
    if (text !== null) messages.push({ role: 'user', content: text })
    text = null
  }
  for (const { block, type, at } of readBlocks(content, path)) {
    if (type === 'text') {
      text = (text ?? '') + readString(block['text'], `${at}.text`)
    } else if (type === 'tool_result') {
      flush()
      messages.push(decodeResult(block, at))
    } else {
      throw unsupportedInput(type, `${at}.type`)
    }
  }
  flush()
  return messages.length > 0 ? messages : [{ role: 'user', content: '' }]
}

/** The input of a call as it was written. Parsing it would change numbers and the order of keys. */
function argumentsOf(block: Fields, at: string, text: string): string {
  const input = block['input'] ?? null
  if (input === null) return '{}'
  checkDepth(readObject(input, `${at}.input`), `${at}.input`)
  return memberText(text, 'input') ?? '{}'
}

/** Types of blocks for a call that a provider ran itself, or for its result. */
const hostedBlock = /^(?:server_tool_use|mcp_tool_use|\w+_tool_result)$/

/**
 * Reads an assistant's content as one message: texts joined, calls in their order, thinking where it can be read. `messageText` gives the
 * message as it was written, and `hosted` collects the types of blocks of a provider's own tools.
 */
export function decodeAssistantContent(content: unknown, path: string, messageText: () => string, hosted: string[]): Message {
  const message: Message = { role: 'assistant', content: null }
  let texts: readonly string[] | undefined
  for (const [index, { block, type, at }] of readBlocks(content, path).entries()) {
    if (type === 'text') {
      message.content = (message.content ?? '') + readString(block['text'], `${at}.text`)
    } else if (type === 'tool_use') {
      texts ??= itemTexts(memberText(messageText(), 'content') ?? '[]')
      const call = {
        id: readString(block['id'], `${at}.id`),
        name: readString(block['name'], `${at}.name`),
        arguments: argumentsOf(block, at, texts[index] ?? '{}'),
      }
      message.toolCalls ??= []
      message.toolCalls.push(call)
    } else if (type === 'thinking') {
      const text = readString(block['thinking'] ?? '', `${at}.thinking`)
      if (text !== '') message.reasoning = (message.reasoning ?? '') + text
    } else if (hostedBlock.test(type)) {
      hosted.push(type)
    } else if (type !== 'redacted_thinking') {
      throw unsupportedInput(type, `${at}.type`)
    }
  }
  return message
}
