import type { Message, ToolDefinition } from '@aworld-train/protocol'
import type { AskedConstraint, ModelCall, ToolChoice } from '../../../call.ts'
import { badRequest } from '../../../failure.ts'
import { inputJson } from '../encode-response.ts'

export interface EncodeMessagesCallOptions {
  /** Model name of the server that is asked. */
  readonly model: string
  /** `max_tokens`, which the format demands. */
  readonly maxTokens: number
}

const textBlock = (text: string) => ({ type: 'text', text })

/** Reasoning is left out: a server takes back only what it has signed itself. */
function assistantBlocks({ content, toolCalls = [] }: Message): object[] {
  const calls = toolCalls.map(({ id, name, arguments: text }) => ({
    type: 'tool_use',
    id,
    name,
    input: JSON.parse(inputJson(text)) as unknown,
  }))
  return [...(content ? [textBlock(content)] : []), ...calls]
}

const resultBlock = ({ toolCallId, content }: Message) => ({ type: 'tool_result', tool_use_id: toolCallId ?? '', content: content ?? '' })

interface WireMessage {
  readonly role: 'user' | 'assistant'
  readonly content: object[]
}

/** Turns of user and assistant; results and texts that follow one another are blocks of one turn. */
function toWire(messages: readonly Message[]): WireMessage[] {
  const wire: WireMessage[] = []
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const blocks =
      role === 'assistant' ? assistantBlocks(message) : [message.role === 'tool' ? resultBlock(message) : textBlock(message.content ?? '')]
    const last = wire.at(-1)
    if (last?.role === role) last.content.push(...blocks)
    else if (blocks.length > 0) wire.push({ role, content: blocks })
  }
  return wire
}

const toWireTool = ({ name, description, parameters }: ToolDefinition) => ({
  name,
  ...(description !== undefined && { description }),
  input_schema: { type: 'object', ...parameters },
})

const kinds = { auto: 'auto', required: 'any', named: 'tool', none: 'none' } as const

const toWireChoice = ({ kind, name, parallel }: ToolChoice) => ({
  type: kinds[kind],
  ...(kind === 'named' && { name }),
  ...(!parallel && kind !== 'none' && { disable_parallel_tool_use: true }),
})

function toWireFormat({ form, param }: AskedConstraint): object {
  if (form.kind === 'json-schema') return { type: 'json_schema', schema: JSON.parse(form.schema) as unknown }
  throw badRequest(`"${param}" asks for a form (${form.kind}) that the model's API does not have; ask for it in words.`, param)
}

const isInstruction = ({ role }: Message) => role === 'system' || role === 'developer'

/** A model call of any dialect as the JSON body of a Messages request; instructions stand in `system`, and only allowed tools are named. */
export function encodeMessagesCall(call: ModelCall, { model, maxTokens }: EncodeMessagesCallOptions): string {
  const { messages, tools, toolChoice, stream, stop, asked, constraint, wants } = call
  if (wants.logprobs) {
    const { param } = wants.logprobs
    throw badRequest(`"${param}" asks for logprobs, which the model's API does not have; leave it out, or ask another model.`, param)
  }
  const system = messages.filter(isInstruction).map(({ content }) => textBlock(content ?? ''))
  return JSON.stringify({
    model,
    max_tokens: maxTokens,
    ...(system.length > 0 && { system }),
    messages: toWire(messages.filter((message) => !isInstruction(message))),
    ...(stream && { stream }),
    ...(stop.length > 0 && { stop_sequences: stop }),
    temperature: asked.temperature,
    top_p: asked.topP,
    top_k: asked.topK,
    ...(constraint && { output_config: { format: toWireFormat(constraint) } }),
    ...(tools.length > 0 && {
      tools: tools.filter(({ name }) => toolChoice.allowed?.includes(name) ?? true).map(toWireTool),
      ...((toolChoice.kind !== 'auto' || !toolChoice.parallel) && { tool_choice: toWireChoice(toolChoice) }),
    }),
  })
}
