import type { Message, ToolDefinition } from '@aworld-train/protocol'
import type { ModelCall, ToolChoice } from '../../../call.ts'
import { encodeToolCall } from '../encode-response.ts'

export interface EncodeCallOptions {
  /** Model name of the server that is asked. */
  readonly model: string
  /** `max_tokens` of the request; absent where the server shall decide. */
  readonly maxTokens?: number | undefined
  /** The sampling that the agent asks for is passed on; `false` where the trainer's is spliced in. Default `true`. */
  readonly agentSampling?: boolean | undefined
}

/** The policy's side knows functions only. */
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

const toWireReference = (name: string) => ({ type: 'function', function: { name } })

function toWireChoice({ kind, name, allowed }: ToolChoice): unknown {
  if (kind === 'named' && name !== undefined) return toWireReference(name)
  if (allowed === undefined || kind === 'none') return kind
  return { type: 'allowed_tools', allowed_tools: { mode: kind, tools: allowed.map(toWireReference) } }
}

/** A model call of any dialect as the JSON body of a Chat Completions request. */
export function encodeChatCall(call: ModelCall, { model, maxTokens, agentSampling = true }: EncodeCallOptions): string {
  const { messages, tools, toolsJson, toolChoice, stream, stop, asked } = call
  const head = {
    model,
    messages: messages.map(toWire),
    ...(stream && { stream, stream_options: { include_usage: true } }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(stop.length > 0 && { stop }),
    ...(agentSampling && { temperature: asked.temperature, top_p: asked.topP, top_k: asked.topK, seed: asked.seed }),
    ...(tools.length > 0 && {
      ...((toolChoice.kind !== 'auto' || toolChoice.allowed) && { tool_choice: toWireChoice(toolChoice) }),
      ...(!toolChoice.parallel && { parallel_tool_calls: false }),
    }),
  }
  const json = JSON.stringify(head)
  return tools.length > 0 ? `${json.slice(0, -1)},"tools":${toolsJson ?? JSON.stringify(tools.map(toWireTool))}}` : json
}
