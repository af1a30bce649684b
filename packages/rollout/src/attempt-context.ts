import {
  type AgentDeclaration,
  type AgentEdge,
  type AgentProgram,
  type AttemptContext,
  type AttemptState,
  type PolicyEndpoint,
  type RolloutContext,
  TrainError,
} from '@aworld-train/core'
import type { AttemptTools } from './attempt-tools.ts'
import type { ToolJournal } from './tool-journal.ts'

export interface AttemptContextOptions {
  readonly attempt: AttemptContext
  readonly program: AgentProgram
  /** Keyed by the name of the agent. */
  readonly endpoints: Readonly<Record<string, PolicyEndpoint>>
  readonly journal: ToolJournal
  readonly tools: AttemptTools
  readonly state: <State>(definition: AttemptState<State>) => Promise<State>
  readonly edges: AgentEdge[]
  readonly maxTurns: number | undefined
  readonly maxToolCalls: number | undefined
}

const functionAgent = 'agent'

/** The agent's view of its attempt. Once the attempt has its result, every call is refused with the signal's reason. */
export function createAttemptContext(options: AttemptContextOptions): RolloutContext {
  const { attempt, program, endpoints, journal, tools, state, edges, maxTurns, maxToolCalls } = options
  const { signal } = attempt

  function declared(name = program.agents.length === 1 ? program.agents[0]!.name : functionAgent): AgentDeclaration {
    signal.throwIfAborted()
    const agent = program.agents.find((other) => other.name === name)
    if (agent) return agent
    const names = program.agents.map((other) => `"${other.name}"`).join(', ')
    throw new TrainError('AGENT_INVALID', `The program has no agent "${name}". It declares ${names}; name one of them.`)
  }

  return {
    ...attempt,
    limits: { maxTurns, maxToolCalls },
    policy: (agent) => endpoints[declared(agent).name]!,
    tools: async (agent) => tools.tools(declared(agent)),
    state,
    recordEdge(edge) {
      signal.throwIfAborted()
      edges.push(edge)
    },
    runTool: async (agent, call, run) => journal.run({ agent: declared(agent).name, ...call, isFunction: true }, run),
  }
}
