import type { AgentAnswer, BudgetLimits, Environment, InvocationRecord, ToolCallRecord, Tools, TrainingTask } from '@aworld-train/core'
import { Agent } from './agent.ts'
import { createAgentGraph } from './agent-graph.ts'
import { toAgentProgram } from './agent-program.ts'
import { createLocalContext } from './local-context.ts'
import type { AgentProgramOptions, AgentSource } from './program-types.ts'

export interface TestRun extends AgentAnswer {
  readonly invocations: readonly InvocationRecord[]
  readonly toolCalls: readonly ToolCallRecord[]
}

export interface TestRunOptions extends AgentProgramOptions {
  /** Address of the policy. Its model is `policy-model`, its key `policy-key`. */
  readonly baseUrl?: string
  readonly input?: TrainingTask['input']
  readonly files?: TrainingTask['files']
  readonly limits?: BudgetLimits
  readonly signal?: AbortSignal
  readonly environment?: Environment
}

/** Runs a program once, in the context that agents get outside a training run, with a policy. */
export async function runOnce(
  source: AgentSource,
  { baseUrl = 'http://127.0.0.1:1/v1', input = 'What is 1 + 2?', files, limits = {}, signal, environment, ...options }: TestRunOptions,
): Promise<TestRun> {
  const program = toAgentProgram(source, options)
  const task: TrainingTask = { version: 1, id: 'task-1', hash: '', input, files, data: {}, dataSource: '', extraInfo: {} }
  const graph = createAgentGraph(typeof source === 'function' ? new Agent() : source)
  const policy = { baseUrl, apiKey: 'policy-key', model: 'policy-model' }
  const local = createLocalContext({ task, graph, signal: signal ?? new AbortController().signal, limits, environment, policy })
  try {
    const answer = await program.run(task, local.context)
    return { ...answer, invocations: local.invocations(), toolCalls: local.toolCalls }
  } finally {
    await local.close()
    await program.close()
  }
}

/** An environment in this process that leases these tools to everyone. */
export function inProcessEnvironment(tools: Tools): Environment & { readonly leases: { opened: number; closed: number } } {
  const leases = { opened: 0, closed: 0 }
  return {
    leases,
    lease() {
      leases.opened += 1
      return {
        tools: async () => tools,
        directory: '/',
        lost: new AbortController().signal,
        collect: async () => null,
        close: async () => {
          leases.closed += 1
        },
      }
    },
    sandboxes: () => [],
    counts: async () => ({ toolCalls: 0, toolErrors: 0, serverToolCalls: null, serversStarted: 0, serversLost: 0 }),
    close: async () => {},
  }
}
