import type { McpConfig, ToolDefinition, ToolResult } from '@aworld-train/protocol'

export interface ToolCallRequest {
  /** The model's id for this call, for the record of the episode; absent when the agent calls on its own. */
  readonly id?: string | undefined
  readonly name: string
  /** Parsed arguments. */
  readonly arguments: Readonly<Record<string, unknown>>
}

/** The tools of one rollout. A failing tool resolves with `isError`; a lost server rejects with a TrainError. */
export interface Tools {
  list(): Promise<readonly ToolDefinition[]>
  call(request: ToolCallRequest, signal: AbortSignal): Promise<ToolResult>
}

export interface LeaseRequest {
  readonly rollout: string
  readonly attempt: number
  readonly agent: string
  readonly mcpConfig: McpConfig
  /** Servers of the configuration to use; all when absent. */
  readonly mcpServers?: readonly string[] | undefined
  /** Tools to hide: server name to tool names. */
  readonly hiddenTools?: Readonly<Record<string, readonly string[]>> | undefined
}

/** What a rollout holds of the environment until it ends. */
export interface EnvironmentLease {
  readonly tools: Tools
  /** A directory of this lease alone, removed when it closes. */
  readonly directory: string
  close(): Promise<void>
}

export interface EnvironmentCounts {
  /** Calls sent to servers, and as the servers counted them (`null` where they do not count). */
  readonly toolCalls: number
  readonly toolErrors: number
  readonly serverToolCalls: number | null
  readonly serversStarted: number
  readonly serversReplaced: number
}

export interface Environment {
  lease(request: LeaseRequest, signal: AbortSignal): Promise<EnvironmentLease>
  counts(): Promise<EnvironmentCounts>
  close(): Promise<void>
}
