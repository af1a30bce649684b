import type { AgentEdge, AgentEndpoint, AgentTask, McpConfig, Message, ToolDefinition, ToolResult } from '@aworld-train/protocol'
import type { Tools } from './environment.ts'

/** Where an agent's model is: what any OpenAI client needs. */
export type PolicyEndpoint = Readonly<AgentEndpoint>

/** One agent of a program, as the rollout runner must know it before a rollout starts. */
export interface AgentDeclaration {
  readonly name: string
  /** Whether its calls go to the policy in training. Other agents call the endpoint that they name, where no tokens are recorded. */
  readonly trainable: boolean
  /** One of the gateway's models, which is recorded as text and never trained; the rollout's policy where absent. */
  readonly model?: string | undefined
  readonly mcpConfig?: McpConfig | undefined
  readonly mcpServers?: readonly string[] | undefined
  /** Tools to hide: server name to tool names. */
  readonly hiddenTools?: Readonly<Record<string, readonly string[]>> | undefined
  /** Names of its tools that are functions of the program. */
  readonly functions?: readonly string[] | undefined
  /** Those functions as a model reads them. */
  readonly definitions?: readonly ToolDefinition[] | undefined
}

export interface BudgetLimits {
  readonly maxTurns?: number | undefined
  readonly maxToolCalls?: number | undefined
}

/** One attempt at a task, for what is set up for it. */
export interface AttemptContext {
  readonly rollout: string
  /** From 0; an attempt that failed is made again with the next number. */
  readonly attempt: number
  readonly task: AgentTask
  /** Reads one of `task.files`. Rejects with ENVIRONMENT_START_FAILED where the task has no such file, or it is gone. */
  file(name: string): Promise<Buffer>
  /** For `setup`: aborts when the attempt ends or the deadline passes. For `teardown`: aborts when its deadline passes. */
  readonly signal: AbortSignal
}

/** What each attempt has for itself. The definition is shared, and a state is found by its definition; no two attempts share a state. */
export interface AttemptState<State> {
  /** Runs once in an attempt, at the first use. A throw or a missed deadline fails the attempt, which may be made again; no reward is given. */
  readonly setup: (context: AttemptContext) => State | Promise<State>
  /** Runs once for each set-up that succeeded, when the attempt ends, however it ends. A throw is a warning. */
  readonly teardown?: ((state: State, context: AttemptContext) => unknown) | undefined
}

/** What a running agent may use of its rollout. */
export interface RolloutContext {
  readonly rollout: string
  readonly attempt: number
  readonly task: AgentTask
  /** Reads one of `task.files`, as tools find it in their working directory. */
  file(name: string): Promise<Buffer>
  /** Aborts when a budget is spent, the rollout is cancelled or the run stops; its reason is a TrainError. */
  readonly signal: AbortSignal
  readonly limits: BudgetLimits
  /** The endpoint of a trainable agent; for a plain function there is one agent, named `agent`. */
  policy(agent?: string): PolicyEndpoint
  /** The leased tools of an agent; none when it declares no servers. Calls are counted, recorded and cancelled here. */
  tools(agent?: string): Promise<Tools>
  /** The state of this attempt by its definition, which sets it up at the first call. Rejects with ENVIRONMENT_START_FAILED. */
  state<State>(definition: AttemptState<State>): Promise<State>
  recordEdge(edge: AgentEdge): void
  /** For tools that are not MCP: runs `call`, counts it and keeps its record. */
  runTool(
    agent: string,
    call: { id: string; name: string; arguments: string },
    run: (signal: AbortSignal) => Promise<ToolResult>,
  ): Promise<ToolResult>
}

export interface AgentAnswer {
  /** Final answer; `null` when the agent gave none. */
  readonly answer: string | null
  readonly messages: readonly Message[]
  /** Set by an agent that stopped at its own limit of turns. */
  readonly stopped?: 'turn-limit' | undefined
}

/** Anything that can be trained: Agent, Swarm and plain functions are turned into this. */
export interface AgentProgram {
  readonly agents: readonly AgentDeclaration[]
  run(task: AgentTask, context: RolloutContext): Promise<AgentAnswer>
}
