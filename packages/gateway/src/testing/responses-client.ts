import type { Message, ToolDefinition } from '@aworld-train/core'
import type { ModelCall, ToolChoice } from '../call.ts'
import { createResponsesStreamDecoder, decodeResponsesAnswer } from '../dialects/responses/client/index.ts'
import type { Body, DialectClient } from './dialect-client.ts'

function toItems({ role, content, reasoning, toolCalls = [], toolCallId }: Message): Body[] {
  if (role === 'tool') return [{ type: 'function_call_output', call_id: toolCallId, output: content }]
  if (role !== 'assistant') return [{ role, content }]
  const items: Body[] = []
  if (reasoning !== undefined) items.push({ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: reasoning }] })
  if (content !== null) items.push({ type: 'message', role, content: [{ type: 'output_text', text: content, annotations: [] }] })
  for (const { id, name, arguments: text } of toolCalls) items.push({ type: 'function_call', call_id: id, name, arguments: text })
  return items
}

const toTool = ({ name, description, parameters }: ToolDefinition) => ({ type: 'function', name, description, parameters, strict: null })

const toChoice = ({ kind, name }: ToolChoice) => (kind === 'named' ? { type: 'function', name } : kind)

/** A client of Responses that sends its whole history. */
export const responsesClient: DialectClient = {
  writeCall: ({ model, messages, tools, toolChoice, stream, maxTokens, requestedSampling }: ModelCall) => ({
    model,
    input: messages.flatMap(toItems),
    tools: tools.map(toTool),
    tool_choice: toChoice(toolChoice),
    parallel_tool_calls: toolChoice.parallel,
    stream,
    max_output_tokens: maxTokens,
    temperature: requestedSampling.temperature ?? null,
    top_p: requestedSampling.topP ?? null,
  }),
  nextBody: (body, answer, user) => ({
    ...body,
    input: [...(body['input'] as object[]), ...(answer['output'] as object[]), { role: 'user', content: user }],
  }),
  toolsText: (schema) => `[{"type":"function","name":"f","strict":null,"parameters":${schema}}]`,
  bodyWithPart: (part) => ({ input: [{ role: 'user', content: [part] }] }),
  readAnswer: decodeResponsesAnswer,
  createDecoder: createResponsesStreamDecoder,
  expected: (messages) => [...messages],
}
