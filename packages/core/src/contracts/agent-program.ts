import type { AgentEndpoint, InvocationRecord } from '../protocol/attempt.ts'
import type { McpConfig } from '../protocol/mcp-config.ts'
import type { Message, ToolDefinition, ToolResult } from '../protocol/message.ts'
import type { AgentTask } from '../protocol/task.ts'
import type { Tools } from './environment.ts'

/** The data of an agent's model that any OpenAI client needs. */
export type PolicyEndpoint = Readonly<AgentEndpoint>

/** One agent of a program, with what the rollout runner must know before a rollout starts. */
export interface AgentDeclaration {
  readonly name: string
  /** Whether its calls go to the policy in training. Other agents call the endpoint that they name; no tokens are recorded there. */
  readonly trainable: boolean
  /** One of the gateway's models, which is recorded as text and never trained. Default: the rollout's policy. */
  readonly model?: string | undefined
  /** The policy that it asks for, where a training has several. Of one policy alone the name does not count. */
  readonly policy?: string | undefined
  /**
   * What tells its calls apart in their random keys: their place among the agent's calls (default), or their prompt, where an agent calls in
   * no certain order.
   */
  readonly randomKey?: 'place' | 'prompt' | undefined
  readonly mcpConfig?: McpConfig | undefined
  readonly mcpServers?: readonly string[] | undefined
  /** Tools to hide: server name to tool names. */
  readonly hiddenTools?: Readonly<Record<string, readonly string[]>> | undefined
  /** Names of its tools that are functions of the program. */
  readonly functions?: readonly string[] | undefined
  /** Definitions of those functions for a model. */
  readonly definitions?: readonly ToolDefinition[] | undefined
}

export interface BudgetLimits {
  readonly maxTurns?: number | undefined
  readonly maxToolCalls?: number | undefined
}

/** One attempt at a task, as its states see it. */
export interface AttemptContext {
  readonly rollout: string
  /** Counted from 0. After a failed attempt, the next one has the next number. */
  readonly attempt: number
  readonly task: AgentTask
  /** Reads one of `task.files`. Rejects with ENVIRONMENT_START_FAILED if the task has no such file, or the file is gone. */
  file(name: string): Promise<Buffer>
  /** For `setup`: aborts when the attempt ends or the deadline passes. For `teardown`: aborts when its deadline passes. */
  readonly signal: AbortSignal
}

/** A state that each attempt has for itself. Attempts share the definition, by which a state is found, but never a state. */
export interface AttemptState<State> {
  /**
   * Runs once in an attempt, at the first use. A throw or a missed deadline fails the attempt without a reward; the rollout may get another
   * attempt.
   */
  readonly setup: (context: AttemptContext) => State | Promise<State>
  /** Runs once for each successful set-up, when the attempt ends for any reason. A throw is a warning. */
  readonly teardown?: ((state: State, context: AttemptContext) => unknown) | undefined
}

/** One agent at work once, from its input to its answer. */
export interface Invocation {
  /** The agent's name for its first invocation, else the name and the place, such as `reader:planner.0.1`. */
  readonly id: string
  readonly agent: string
  /** Where it stands in the program, with agents by their number; '' for the first invocation of an agent. */
  readonly place: string
  /** The endpoint of its model. Calls to it are recorded as this invocation's. */
  policy(): PolicyEndpoint
  /** Its leased tools; none if the agent declares no servers. */
  tools(): Promise<Tools>
  /** Runs `call`, counts it and keeps its record. It is for tools that are not MCP. */
  runTool(call: { id: string; name: string; arguments: string }, run: (signal: AbortSignal) => Promise<ToolResult>): Promise<ToolResult>
  /** Records when it ended, and whether with an answer. */
  end(answered: boolean): void
}

export interface InvocationOptions {
  /** Default: '', the agent's first invocation. */
  readonly place?: string | undefined
  /** What started it. Default: the task. */
  readonly startedBy?: InvocationRecord['startedBy'] | undefined
}

/** The parts of its rollout that a running agent may use. */
export interface RolloutContext {
  readonly rollout: string
  readonly attempt: number
  readonly task: AgentTask
  /** Reads one of `task.files`, the same that tools find in their working directory. */
  file(name: string): Promise<Buffer>
  /** Aborts when a budget is spent, the rollout is cancelled or the run stops. Its reason is a TrainError. */
  readonly signal: AbortSignal
  readonly limits: BudgetLimits
  /**
   * The endpoint of a trainable agent. A plain function is one agent, named `agent`. An agent that works several times has a `place` for each: a
   * text of your own, or the id of the tool call that asks for it, of which what the model did counts and the attempt does not.
   */
  policy(agent?: string, place?: string): PolicyEndpoint
  /** The leased tools of an agent; none if it declares no servers. Calls through it are counted, recorded and cancelled. */
  tools(agent?: string, place?: string): Promise<Tools>
  /** The state of this attempt for a definition, set up at the first call. Rejects with ENVIRONMENT_START_FAILED. */
  state<State>(definition: AttemptState<State>): Promise<State>
  /** Starts an invocation of an agent. Throws AGENT_INVALID for a place where the agent was started before. */
  invoke(agent: string, options?: InvocationOptions): Invocation
  /** Runs `call`, counts it and keeps its record. It is for tools that are not MCP. */
  runTool(
    agent: string,
    call: { id: string; name: string; arguments: string },
    run: (signal: AbortSignal) => Promise<ToolResult>,
    place?: string,
  ): Promise<ToolResult>
}

export interface AgentAnswer {
  /** Final answer; `null` if the agent gave none. */
  readonly answer: string | null
  readonly messages: readonly Message[]
  /** Set by an agent that stopped at a limit of turns. */
  readonly stopped?: 'turn-limit' | undefined
  /** Whether an agent met a limit that it shares with others, of the rollout or of a swarm. */
  readonly metSharedLimit?: true | undefined
}

/** Anything that can be trained. Agent, Swarm and plain functions are converted to this. */
export interface AgentProgram {
  readonly agents: readonly AgentDeclaration[]
  /** Pairs of agents that may work at once, as far as the program declares it; an agent beside itself may be asked several times at once. */
  readonly sideBySide?: readonly (readonly [string, string])[] | undefined
  run(task: AgentTask, context: RolloutContext): Promise<AgentAnswer>
}
