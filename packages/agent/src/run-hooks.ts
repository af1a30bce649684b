import { errorMessage, Message, ToolCall, ToolResult, TrainError } from '@aworld-train/core'
import { z } from 'zod'
import type { AfterModelEvent, AfterToolEvent, AgentHooks, BeforeModelEvent, BeforeToolEvent } from './hooks.ts'
import { describeValue } from './named-options.ts'

const Messages = z.array(Message).min(1)

/** Calls a hook and checks what it returned; `undefined` if that is nothing. */
async function callHook<Event extends { agent: string; signal: AbortSignal }, Change>(
  name: keyof AgentHooks,
  hook: ((event: Event) => unknown) | undefined,
  event: Event,
  schema: z.ZodType<Change>,
): Promise<Change | undefined> {
  if (!hook) return undefined
  let returned: unknown
  try {
    returned = await hook(event)
  } catch (error) {
    event.signal.throwIfAborted()
    const message = errorMessage(error)
    throw new TrainError('AGENT_FAILED', `The ${name} hook of agent "${event.agent}" threw: ${message}`, { cause: error })
  }
  if (returned === undefined || returned === null) return undefined
  const parsed = schema.safeParse(returned)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new TrainError(
    'AGENT_FAILED',
    `The ${name} hook of agent "${event.agent}" returned ${describeValue(returned)} that does not fit: ${issue!.path.join('.')}: ${issue!.message}; return nothing to change nothing.`,
  )
}

const MessagesChange = z.strictObject({ messages: Messages })
const MessageChange = z.strictObject({ message: Message })
const CallChange = z.union([z.strictObject({ result: ToolResult }), z.strictObject({ call: ToolCall })])
const ResultChange = z.strictObject({ result: ToolResult })

/** Returns the messages to send, as changed by the hooks. */
export async function runBeforeModel(hooks: readonly AgentHooks[], event: BeforeModelEvent): Promise<readonly Message[]> {
  let { messages } = event
  for (const { beforeModel } of hooks) {
    const change = await callHook('beforeModel', beforeModel, { ...event, messages: freezeAll(messages) }, MessagesChange)
    if (change) messages = change.messages
  }
  return messages
}

export async function runAfterModel(hooks: readonly AgentHooks[], event: AfterModelEvent): Promise<Message> {
  let { message } = event
  for (const { afterModel } of hooks) {
    const change = await callHook('afterModel', afterModel, { ...event, message: Object.freeze(message) }, MessageChange)
    if (change) message = change.message
  }
  return message
}

/** Returns the call to make, or the result that stands in for it. */
export async function runBeforeTool(
  hooks: readonly AgentHooks[],
  event: BeforeToolEvent,
): Promise<{ readonly call: ToolCall; readonly result: ToolResult | undefined }> {
  let { call } = event
  for (const { beforeTool } of hooks) {
    const change = await callHook('beforeTool', beforeTool, { ...event, call: Object.freeze(call) }, CallChange)
    if (change && 'result' in change) return { call, result: change.result }
    if (change) call = { ...change.call, id: call.id }
  }
  return { call, result: undefined }
}

export async function runAfterTool(hooks: readonly AgentHooks[], event: AfterToolEvent): Promise<ToolResult> {
  let { result } = event
  for (const { afterTool } of hooks) {
    const change = await callHook('afterTool', afterTool, { ...event, result: Object.freeze(result) }, ResultChange)
    if (change) result = change.result
  }
  return result
}

function freezeAll(messages: readonly Message[]): readonly Message[] {
  for (const message of messages) Object.freeze(message)
  return Object.freeze([...messages])
}
