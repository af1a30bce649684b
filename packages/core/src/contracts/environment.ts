import type { McpConfig } from '../protocol/mcp-config.ts'
import type { ToolDefinition, ToolResult } from '../protocol/message.ts'
import type { TrainingTask } from '../protocol/task.ts'
import type { SandboxTier, WorkspaceFile } from './sandbox.ts'

export interface ToolCallRequest {
  /** The model's id for this call, for the record of the episode. Absent if the agent makes the call itself. */
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

/** The rollout that a lease is for. */
export interface LeaseRequest {
  readonly rollout: string
  readonly attempt: number
  /** Number of the rollout among those of its task, from 0. */
  readonly sample: number
  readonly task: LeaseTask
}

/** The parts of a task that make a rollout's environment. */
export type LeaseTask = Pick<TrainingTask, 'id' | 'files' | 'setup'>

/** The servers and tools that one agent of a rollout may use. */
export interface ToolSelection {
  readonly agent: string
  readonly mcpConfig: McpConfig
  /** Servers of the configuration to use. Default: all. */
  readonly mcpServers?: readonly string[] | undefined
  /** Tools to hide: server name to tool names. */
  readonly hiddenTools?: Readonly<Record<string, readonly string[]>> | undefined
}

/**
 * A rollout's part of the environment, held until it ends: one directory for all its agents, and one process for each set of equal servers.
 */
export interface EnvironmentLease {
  /** A directory of this lease alone, removed when it closes. */
  readonly directory: string
  /**
   * Aborts with an error of the boundary `environment`, mostly TOOL_SERVER_DIED, when a server is gone that may have kept state for this
   * lease. It is not replaced by a fresh one: every later call rejects with that error.
   */
  readonly lost: AbortSignal
  /**
   * The tools of one agent. Starts its servers unless another agent's are equal. Before the first call resolves, the task's files and
   * set-up are done. A failure rejects with an error of the boundary `environment` and makes the lease useless.
   */
  tools(selection: ToolSelection, signal: AbortSignal): Promise<Tools>
  /**
   * Ends the servers of its directory, and reads the files that the environment collects, of the directory and of the leases on environment
   * servers. `null` if it collects none. Rejects with FILES_REFUSED, or with TOOL_SERVER_DIED if a server did not hand its files over.
   */
  collect(signal: AbortSignal): Promise<readonly WorkspaceFile[] | null>
  close(): Promise<void>
}

export interface EnvironmentCounts {
  /** Calls sent to servers, and the servers' own counts (`null` if they do not count). */
  readonly toolCalls: number
  readonly toolErrors: number
  readonly serverToolCalls: number | null
  readonly serversStarted: number
  /** Servers that died, and servers that were ended because they did not answer. */
  readonly serversLost: number
}

/** The sandbox of an environment server that rollouts lease from, or of a server of the user's own. */
export interface LeasedSandbox {
  /** Address of the server; `stdio:` and its name for a server of the user's own. */
  readonly url: string
  readonly tier: SandboxTier
  /** Sentences about why this tier was chosen, and which limits it does not enforce. */
  readonly notices: readonly string[]
  /** Page that shows the desktops of its leases, if they have some. A lease is chosen by `rollout=`, the name of its rollout. */
  readonly desktopUrl?: string | undefined
}

export interface Environment {
  /** Takes no time, because servers start when an agent asks for its tools. */
  lease(request: LeaseRequest): EnvironmentLease
  counts(): Promise<EnvironmentCounts>
  /** The sandboxes of the leases' servers so far, one for each server. */
  sandboxes(): readonly LeasedSandbox[]
  close(): Promise<void>
}
