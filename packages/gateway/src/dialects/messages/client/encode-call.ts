import type { Message, ToolDefinition } from '@aworld-train/core'
import type { ModelCall, RequestedConstraint, ToolChoice } from '../../../call.ts'
import { badRequest } from '../../../failure.ts'
import { keepAllowed } from '../../chat-completions/client/index.ts'
import { itemTexts, nestedText } from '../../member-text.ts'
import { toolUse } from '../encode-response.ts'

export interface EncodeMessagesCallOptions {
  /** The server's name for the model. */
  readonly model: string
  /** `max_tokens`, which the format demands. */
  readonly maxTokens: number
}

const textBlock = (text: string) => ({ type: 'text', text })

/** Reasoning is left out, because a server takes back only what it has signed itself. */
function assistantBlocks({ content, toolCalls = [] }: Message): string[] {
  return [...(content ? [JSON.stringify(textBlock(content))] : []), ...toolCalls.map(toolUse)]
}

const resultBlock = ({ toolCallId, content }: Message) => ({ type: 'tool_result', tool_use_id: toolCallId ?? '', content: content ?? '' })

function blocksOf(message: Message): string[] {
  if (message.role === 'assistant') return assistantBlocks(message)
  return [JSON.stringify(message.role === 'tool' ? resultBlock(message) : textBlock(message.content ?? ''))]
}

interface WireMessage {
  readonly role: 'user' | 'assistant'
  /** JSON of blocks. */
  readonly content: string[]
}

/** Turns of user and assistant. Results and texts that follow one another are blocks of one turn. */
function toWire(messages: readonly Message[]): WireMessage[] {
  const wire: WireMessage[] = []
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const blocks = blocksOf(message)
    const last = wire.at(-1)
    if (last?.role === role) last.content.push(...blocks)
    else if (blocks.length > 0) wire.push({ role, content: blocks })
  }
  return wire
}

const messageText = ({ role, content }: WireMessage) => `{"role":"${role}","content":[${content.join(',')}]}`

/**
 * A tool with its schema as it was written and with the `type` that the format demands. `text` is the tool in the form of Chat Completions.
 */
function toolText({ name, description, parameters }: ToolDefinition, text: string | undefined): string {
  const written = (text && nestedText(text, ['function', 'parameters'])) ?? JSON.stringify(parameters)
  const isEmpty = Object.keys(parameters).length === 0
  const schema = 'type' in parameters ? written : `{"type":"object"${isEmpty ? '}' : `,${written.slice(1)}`}`
  return `${JSON.stringify({ name, description }).slice(0, -1)},"input_schema":${schema}}`
}

const kinds = { auto: 'auto', required: 'any', named: 'tool', none: 'none' } as const

const toWireChoice = ({ kind, name, parallel }: ToolChoice) => ({
  type: kinds[kind],
  ...(kind === 'named' && { name }),
  ...(!parallel && kind !== 'none' && { disable_parallel_tool_use: true }),
})

function formatText({ form, param }: RequestedConstraint): string {
  if (form.kind === 'json-schema') return `{"type":"json_schema","schema":${form.schema}}`
  throw badRequest(`"${param}" asks for a form (${form.kind}) that the model's API does not have; ask for it in words.`, param)
}

const isInstruction = ({ role }: Message) => role === 'system' || role === 'developer'

/**
 * Writes a model call of any dialect as the JSON body of a Messages request. Instructions stand in `system`,
 * and only allowed tools are named.
 */
export function encodeMessagesCall(call: ModelCall, { model, maxTokens }: EncodeMessagesCallOptions): string {
  const { messages, tools, toolsJson, toolChoice, stream, stop, requestedSampling, constraint, wants } = call
  if (wants.logprobs) {
    const { param } = wants.logprobs
    throw badRequest(`"${param}" asks for logprobs, which the model's API does not have; leave it out, or ask another model.`, param)
  }
  const system = messages.filter(isInstruction).map(({ content }) => textBlock(content ?? ''))
  const head = {
    model,
    max_tokens: maxTokens,
    ...(system.length > 0 && { system }),
    ...(stream && { stream }),
    ...(stop.length > 0 && { stop_sequences: stop }),
    temperature: requestedSampling.temperature,
    top_p: requestedSampling.topP,
    top_k: requestedSampling.topK,
    ...(tools.length > 0 && (toolChoice.kind !== 'auto' || !toolChoice.parallel) && { tool_choice: toWireChoice(toolChoice) }),
  }
  const wireMessages = toWire(messages.filter((message) => !isInstruction(message))).map(messageText)
  const texts = itemTexts(toolsJson ?? '[]')
  const names = tools.map(({ name }) => name)
  const allowedTools = keepAllowed(
    toolChoice,
    names,
    tools.map((tool, index) => toolText(tool, texts[index])),
  )
  const members = [
    JSON.stringify(head).slice(0, -1),
    `"messages":[${wireMessages.join(',')}]`,
    ...(constraint ? [`"output_config":{"format":${formatText(constraint)}}`] : []),
    ...(tools.length > 0 ? [`"tools":[${allowedTools.join(',')}]`] : []),
  ]
  return `${members.join(',')}}`
}
