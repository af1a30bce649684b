import type { FinishReason, Message, ToolCall, ToolDefinition, ToolResult, Usage } from '@aworld-train/core'

export interface BeforeModelEvent {
  readonly agent: string
  /** Index of the model call in this run of the agent. */
  readonly turn: number
  /** Frozen. Return `{ messages }` to send others, which become the history. */
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  readonly signal: AbortSignal
}

export interface AfterModelEvent {
  readonly agent: string
  readonly turn: number
  readonly message: Message
  readonly finishReason: FinishReason
  /** `null` if the endpoint reported none. */
  readonly usage: Usage | null
  readonly signal: AbortSignal
}

export interface BeforeToolEvent {
  readonly agent: string
  readonly turn: number
  readonly call: ToolCall
  readonly signal: AbortSignal
}

export interface AfterToolEvent extends BeforeToolEvent {
  readonly result: ToolResult
}

// biome-ignore lint/suspicious/noConfusingVoidType: a hook may be a function without a return.
type Hook<Event, Change> = (event: Event) => Change | undefined | void | Promise<Change | undefined | void>

/**
 * Functions around model and tool calls. A returned value replaces the original; returning nothing changes
 * nothing. A throw fails the agent.
 */
export interface AgentHooks {
  readonly beforeModel?: Hook<BeforeModelEvent, { readonly messages: readonly Message[] }> | undefined
  readonly afterModel?: Hook<AfterModelEvent, { readonly message: Message }> | undefined
  /** Returning a result answers the call without running the tool. */
  readonly beforeTool?: Hook<BeforeToolEvent, { readonly result: ToolResult } | { readonly call: ToolCall }> | undefined
  readonly afterTool?: Hook<AfterToolEvent, { readonly result: ToolResult }> | undefined
}
