import type { Message, MessageRole } from '@aworld-train/core'
import { badRequest, unsupportedInput } from '../../failure.ts'
import { type Fields, readObject, readOptionalString, readString } from '../read-fields.ts'
import { readText, type TextParts } from '../read-text.ts'
import { toCustomArguments } from '../tools-json.ts'
import { itemOwner } from './item-ids.ts'
import type { ResponseMemory } from './memory.ts'
import type { Namespaces } from './namespaces.ts'
import { openReasoning } from './reasoning.ts'

const roles: ReadonlySet<string> = new Set<MessageRole>(['system', 'developer', 'user', 'assistant'])

const textParts: TextParts = {
  input_text: 'text',
  output_text: 'text',
  text: 'text',
  summary_text: 'text',
  reasoning_text: 'text',
  refusal: 'refusal',
}

const decodeText = (content: unknown, path: string): string => readText(content, path, textParts) ?? ''

/** The text of a reasoning item: its own, the text that an earlier answer sealed in it, or its summary. */
function decodeReasoning(item: Fields, path: string): string {
  const content = decodeText(item['content'], `${path}.content`)
  if (content !== '') return content
  const sealed = openReasoning(item['encrypted_content'])
  return sealed ?? decodeText(item['summary'], `${path}.summary`)
}

/** State for reading the items of a request. */
export interface ItemParts {
  readonly memory: ResponseMemory
  readonly namespaces: Namespaces
  /** Collects the types of items that are left out. */
  readonly hosted: string[]
}

/** Builds the messages of a conversation from its items. All that an assistant wrote in one answer becomes one message. */
class MessageBuilder {
  readonly messages: Message[] = []
  #open: Message | null = null
  #owner: string | null = null

  add(message: Message): void {
    this.#open = null
    this.messages.push(message)
  }

  /** Returns the assistant message of the next item. It is a new one if `isNext` says that the open one is complete. */
  assistant(id: unknown, isNext: (open: Message) => boolean): Message {
    const owner = itemOwner(id)
    const open = this.#open
    const together = owner !== null && owner === this.#owner
    this.#owner = owner
    if (open && (together || !isNext(open))) return open
    const message: Message = { role: 'assistant', content: null }
    this.messages.push(message)
    this.#open = message
    return message
  }
}

const hasCalls = ({ toolCalls = [] }: Message) => toolCalls.length > 0

function addCall(builder: MessageBuilder, item: Fields, path: string, text: string, { namespaces }: ItemParts): void {
  const name = namespaces.nameIn(item, path)
  const id = readString(item['call_id'], `${path}.call_id`)
  const message = builder.assistant(item['id'], () => false)
  message.toolCalls ??= []
  message.toolCalls.push({ id, name, arguments: text })
}

function addMessage(builder: MessageBuilder, item: Fields, path: string): void {
  const role = readString(item['role'], `${path}.role`)
  if (!roles.has(role)) {
    throw badRequest(`"${path}.role" is "${role}"; it must be one of ${[...roles].join(', ')}.`, `${path}.role`)
  }
  const content = decodeText(item['content'], `${path}.content`)
  if (role !== 'assistant') {
    builder.add({ role: role as MessageRole, content })
    return
  }
  const message = builder.assistant(item['id'], (open) => open.content !== null && !hasCalls(open))
  message.content = (message.content ?? '') + content
}

type AddItem = (builder: MessageBuilder, item: Fields, path: string, parts: ItemParts) => void

const addResult: AddItem = (builder, item, path) => {
  const toolCallId = readString(item['call_id'], `${path}.call_id`)
  builder.add({ role: 'tool', content: decodeText(item['output'], `${path}.output`), toolCallId })
}

/** Readers by the type of an item. */
const kinds: Readonly<Record<string, AddItem>> = {
  message: addMessage,
  reasoning(builder, item, path) {
    const text = decodeReasoning(item, path)
    const message = builder.assistant(item['id'], (open) => open.content !== null || hasCalls(open))
    if (text !== '') message.reasoning = (message.reasoning ?? '') + text
  },
  function_call: (builder, item, path, parts) =>
    addCall(builder, item, path, readOptionalString(item['arguments'], `${path}.arguments`) ?? '', parts),
  custom_tool_call: (builder, item, path, parts) =>
    addCall(builder, item, path, toCustomArguments(readString(item['input'], `${path}.input`)), parts),
  function_call_output: addResult,
  custom_tool_call_output: addResult,
}

/** Finds an item of an earlier answer by its id. */
function findItem(id: string, path: string, memory: ResponseMemory): unknown {
  const owner = itemOwner(id)
  const stored = owner === null ? undefined : memory.get(`resp_${owner}`)
  const { output } = stored ? (JSON.parse(stored.json) as { output: readonly { id: string }[] }) : { output: [] }
  const item = output.find((candidate) => candidate.id === id)
  if (item) return item
  throw badRequest(`"${path}" names item "${id}", which is not kept here; send the item itself.`, path, 400, 'item_not_found')
}

/** Items of a provider's own tools: calls that it ran, and their results. */
const hostedItem = /^(?:mcp_\w+|\w+_call|\w+_call_output|tool_search_output)$/

/** Reads the items of a request as messages. Throws GATEWAY_INPUT_UNSUPPORTED for items that are not text, calls or their results. */
export function decodeItems(items: readonly unknown[], path: string, parts: ItemParts): Message[] {
  const builder = new MessageBuilder()
  for (const [index, value] of items.entries()) {
    const at = `${path}[${index}]`
    const fields = readObject(value, at)
    const isReference = fields['type'] === 'item_reference' || (fields['type'] === undefined && fields['role'] === undefined)
    const item = isReference ? readObject(findItem(readString(fields['id'], `${at}.id`), `${at}.id`, parts.memory), at) : fields
    const type = readOptionalString(item['type'], `${at}.type`) ?? 'message'
    const add = kinds[type]
    if (Object.hasOwn(kinds, type) && add) add(builder, item, at, parts)
    else if (hostedItem.test(type)) parts.hosted.push(type)
    else throw unsupportedInput(type, `${at}.type`)
  }
  return builder.messages
}
