import type { McpConfig, ToolDefinition, ToolResult, TrainingTask } from '@aworld-train/protocol'
import type { SandboxTier } from './sandbox.ts'

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

/** Whom a lease is for. */
export interface LeaseRequest {
  readonly rollout: string
  readonly attempt: number
  /** Number of the rollout among those of its task, from 0. */
  readonly sample: number
  readonly task: LeaseTask
}

/** What of its task a rollout's environment is made from. */
export type LeaseTask = Pick<TrainingTask, 'id' | 'files' | 'setup'>

/** The servers and tools that one agent of a rollout may use. */
export interface ToolSelection {
  readonly agent: string
  readonly mcpConfig: McpConfig
  /** Servers of the configuration to use; all when absent. */
  readonly mcpServers?: readonly string[] | undefined
  /** Tools to hide: server name to tool names. */
  readonly hiddenTools?: Readonly<Record<string, readonly string[]>> | undefined
}

/** What a rollout holds of the environment until it ends: one directory for all its agents, and one process for equal servers of theirs. */
export interface EnvironmentLease {
  /** A directory of this lease alone, removed when it closes. */
  readonly directory: string
  /**
   * Aborts with an error of the boundary `environment`, TOOL_SERVER_DIED mostly, when a server is gone that may have kept something for
   * this lease. No blank one takes its place: every later call rejects with that error.
   */
  readonly lost: AbortSignal
  /**
   * The tools of one agent, whose servers are started now unless another agent's are equal. Before the first resolves, the task's files
   * and set-up are done. What fails rejects with an error of the boundary `environment`, and the lease is of no use any more.
   */
  tools(selection: ToolSelection, signal: AbortSignal): Promise<Tools>
  close(): Promise<void>
}

export interface EnvironmentCounts {
  /** Calls sent to servers, and as the servers counted them (`null` where they do not count). */
  readonly toolCalls: number
  readonly toolErrors: number
  readonly serverToolCalls: number | null
  readonly serversStarted: number
  /** Those that died, and those that were ended because they answered nothing. */
  readonly serversLost: number
}

/** The sandbox of an environment server that rollouts lease from, or of a server of the user's own. */
export interface LeasedSandbox {
  /** Address of the server; `stdio:` and its name where it is one of the user's own. */
  readonly url: string
  readonly tier: SandboxTier
  /** Why this tier, and which limits it does not hold. */
  readonly notices: readonly string[]
}

export interface Environment {
  /** Takes no time: servers start when an agent asks for its tools. */
  lease(request: LeaseRequest): EnvironmentLease
  counts(): Promise<EnvironmentCounts>
  /** Those that servers of leases ran in so far, one for each server. */
  sandboxes(): readonly LeasedSandbox[]
  close(): Promise<void>
}
