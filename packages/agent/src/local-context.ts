import {
  type AgentTask,
  type BudgetLimits,
  createAttemptStates,
  type Environment,
  type EnvironmentLease,
  errorMessage,
  type Invocation,
  InvocationJournal,
  type InvocationRecord,
  invocationEndpoint,
  orAborted,
  type PolicyEndpoint,
  preciseNow,
  type RolloutContext,
  readTaskFile,
  type ToolCallRecord,
  type ToolResult,
  type Tools,
  TrainError,
} from '@aworld-train/core'
import type { Agent } from './agent.ts'
import type { AgentGraph } from './agent-graph.ts'

/** Longest time of setting up or tearing down one state. */
const stateTimeoutMs = 120_000

/** How long the end of a task waits for a set-up under way. */
const stateGraceMs = 1000

export interface LocalContextOptions {
  readonly task: AgentTask
  readonly graph: AgentGraph
  readonly signal: AbortSignal
  readonly limits: BudgetLimits
  readonly environment: Environment | undefined
  /** The model of agents without an endpoint of their own. */
  readonly policy: PolicyEndpoint | undefined
}

/** The context of an agent that is asked outside a training run. `close` gives the leases back. */
export interface LocalContext {
  readonly context: RolloutContext
  invocations(): readonly InvocationRecord[]
  readonly toolCalls: readonly ToolCallRecord[]
  close(): Promise<void>
}

/** Creates a context in which agents use their own endpoints. Tools are leased on first use, counted and recorded. */
export function createLocalContext({ task, graph, signal, limits, environment, policy }: LocalContextOptions): LocalContext {
  const invocations = new InvocationJournal(graph.agents.map((agent) => graph.nameOf(agent)))
  const toolCalls: ToolCallRecord[] = []
  let lease: EnvironmentLease | null = null
  const opened = new Map<string, Promise<Tools>>()
  const file = (name: string) => readTaskFile(task, '.', name)
  const attempt = { rollout: task.id, attempt: 0, task, file, signal }
  const states = createAttemptStates({ attempt, timeoutMs: stateTimeoutMs, graceMs: stateGraceMs })
  let started = 0

  const record = async (
    { id: trajectory, agent }: Pick<Invocation, 'id' | 'agent'>,
    call: { id: string; name: string; arguments: string },
    run: () => Promise<ToolResult>,
  ): Promise<ToolResult> => {
    signal.throwIfAborted()
    if (limits.maxToolCalls !== undefined && started >= limits.maxToolCalls) {
      throw new TrainError('AGENT_LIMIT', `Agent "${agent}" reached the limit of ${limits.maxToolCalls} tool calls; raise maxToolCalls.`)
    }
    started += 1
    const startedAt = preciseNow()
    const keep = (result: ToolResult) =>
      toolCalls.push({ agent, trajectory, turn: null, ...call, ...result, timing: { startedAt, endedAt: preciseNow() } })
    try {
      const result = await orAborted(run(), signal)
      keep(result)
      return result
    } catch (error) {
      keep({ content: errorMessage(error), isError: true })
      throw error
    }
  }

  const openTools = (agent: Agent, name: string): Promise<Tools> => {
    const { mcpConfig, mcpServers, blackToolActions: hiddenTools } = agent
    if (!environment || !mcpConfig) {
      throw new TrainError(
        'CONFIG_INVALID',
        `Agent "${name}" has an mcpConfig, but these Runners have no environment; use the Runners of "aworld-train", or createRunners({ environment }).`,
      )
    }
    lease ??= environment.lease({ rollout: task.id, attempt: 0, sample: 0, task: { id: task.id, files: task.files } })
    return lease.tools({ agent: name, mcpConfig, mcpServers, hiddenTools }, signal)
  }

  const policyAt = (agent: string, place: string): PolicyEndpoint => {
    if (policy) return invocationEndpoint(policy, place)
    throw new TrainError(
      'CONFIG_INVALID',
      `Agent "${agent}" has no model of its own; set llmBaseUrl and llmModelName in its AgentConfig, or run it in a trainer.`,
    )
  }

  const toolsOf = async (invocation: Pick<Invocation, 'id' | 'agent'>): Promise<Tools> => {
    const name = invocation.agent
    const agent = graph.agents.find((entry) => graph.nameOf(entry) === name)
    if (!agent?.mcpConfig)
      return { list: async () => [], call: async ({ name: tool }) => ({ content: `Error: there is no tool "${tool}".`, isError: true }) }
    const pending = opened.get(name) ?? openTools(agent, name)
    opened.set(name, pending)
    const tools = await pending
    return {
      list: () => tools.list(),
      call: (request, limit) => {
        const call = { id: request.id ?? '', name: request.name, arguments: JSON.stringify(request.arguments) }
        return record(invocation, call, () => tools.call(request, limit))
      },
    }
  }

  const context: RolloutContext = {
    ...attempt,
    limits,
    policy: (agent = 'agent', place) => policyAt(agent, invocations.at(agent, place).place),
    tools: async (agent = 'agent', place) => toolsOf({ agent, id: invocations.at(agent, place).id }),
    state: (definition) => states.get(definition),
    invoke(agent, options) {
      const { id, place } = invocations.start(agent, options)
      return {
        id,
        agent,
        place,
        policy: () => policyAt(agent, place),
        tools: () => toolsOf({ id, agent }),
        runTool: (call, run) => record({ id, agent }, call, () => run(signal)),
        end: (answered) => invocations.end(id, answered),
      }
    },
    runTool: (agent, call, run, place) => record({ agent, id: invocations.at(agent, place).id }, call, () => run(signal)),
  }
  return {
    context,
    invocations: () => invocations.records(),
    toolCalls,
    async close() {
      await Promise.allSettled([lease?.close(), states.close()])
    },
  }
}
