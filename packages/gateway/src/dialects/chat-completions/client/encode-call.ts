import type { Message, ToolDefinition } from '@aworld-train/core'
import type { ModelCall } from '../../../call.ts'
import { badRequest } from '../../../failure.ts'
import { itemTexts } from '../../member-text.ts'
import { encodeToolCall } from '../encode-response.ts'
import { encodeToolChoice, keepAllowed } from './encode-choice.ts'

export interface EncodeCallOptions {
  /** The server's name for the model. */
  readonly model: string
  /** `max_tokens` of the request; absent if the server should decide. */
  readonly maxTokens?: number | undefined
  /** Whether the sampling that the agent asks for is passed on. `false` where the trainer's is spliced in. Default `true`. */
  readonly agentSampling?: boolean | undefined
}

/** Custom tools are written as functions, which every server understands. */
const noTools: ReadonlySet<string> = new Set()

function toWire({ role, content, reasoning, toolCalls, toolCallId, name }: Message): object {
  return {
    role,
    content,
    ...(name !== undefined && { name }),
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(toolCalls && toolCalls.length > 0 && { tool_calls: toolCalls.map((call) => encodeToolCall(call, noTools)) }),
    ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
  }
}

const toWireTool = ({ name, description, parameters }: ToolDefinition) => ({
  type: 'function',
  function: { name, ...(description !== undefined && { description }), parameters },
})

/**
 * JSON of a call's `response_format`; `undefined` if it has none or is a forced call. Throws GATEWAY_BAD_REQUEST
 * for a form that the API lacks.
 */
export function encodeFormat({ constraint, toolChoice: { kind } }: ModelCall): string | undefined {
  if (!constraint || kind === 'required' || kind === 'named') return undefined
  const { form, param, strict } = constraint
  if (form.kind === 'json-object') return '{"type":"json_object"}'
  if (form.kind !== 'json-schema') throw badRequest(`"${param}" asks for a form (${form.kind}) that the model's API does not have.`, param)
  return `{"type":"json_schema","json_schema":{"name":"answer","schema":${form.schema},"strict":${strict}}}`
}

function toolsMember({ tools, toolsJson, toolChoice }: ModelCall): string {
  if (tools.length === 0) return ''
  const texts = toolsJson === undefined ? tools.map((tool) => JSON.stringify(toWireTool(tool))) : itemTexts(toolsJson)
  const names = tools.map(({ name }) => name)
  return `,"tools":[${keepAllowed(toolChoice, names, texts).join(',')}]`
}

/** Writes a model call of any dialect as the JSON body of a Chat Completions request. */
export function encodeChatCall(call: ModelCall, { model, maxTokens, agentSampling = true }: EncodeCallOptions): string {
  const { messages, tools, toolChoice, stream, stop, requestedSampling, wants } = call
  const head = {
    model,
    messages: messages.map(toWire),
    ...(stream && { stream, stream_options: { include_usage: true } }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(wants.logprobs && { logprobs: true, ...(wants.logprobs.top > 0 && { top_logprobs: wants.logprobs.top }) }),
    ...(stop.length > 0 && { stop }),
    ...(agentSampling && {
      temperature: requestedSampling.temperature,
      top_p: requestedSampling.topP,
      top_k: requestedSampling.topK,
      seed: requestedSampling.seed,
    }),
    ...(tools.length > 0 && {
      ...(toolChoice.kind !== 'auto' && { tool_choice: encodeToolChoice(toolChoice) }),
      ...(!toolChoice.parallel && { parallel_tool_calls: false }),
    }),
  }
  const format = encodeFormat(call)
  return `${JSON.stringify(head).slice(0, -1)}${format ? `,"response_format":${format}` : ''}${toolsMember(call)}}`
}
