import {
  type AgentDeclaration,
  type AgentProgram,
  type AttemptContext,
  type AttemptState,
  type Invocation,
  type InvocationJournal,
  type InvocationOptions,
  invocationEndpoint,
  type PolicyEndpoint,
  type RolloutContext,
  TrainError,
} from '@aworld-train/core'
import type { AttemptTools } from './attempt-tools.ts'
import type { InvocationSpans } from './observe/invocation-spans.ts'
import type { ToolJournal } from './tool-journal.ts'

export interface AttemptContextOptions {
  readonly attempt: AttemptContext
  readonly program: AgentProgram
  /** Keyed by the name of the agent. */
  readonly endpoints: Readonly<Record<string, PolicyEndpoint>>
  readonly journal: ToolJournal
  readonly tools: AttemptTools
  readonly state: <State>(definition: AttemptState<State>) => Promise<State>
  readonly invocations: InvocationJournal
  readonly spans: InvocationSpans
  readonly maxTurns: number | undefined
  readonly maxToolCalls: number | undefined
}

const functionAgent = 'agent'

/** The agent's view of its attempt. Once the attempt has its result, every call is refused with the signal's reason. */
export function createAttemptContext(options: AttemptContextOptions): RolloutContext {
  const { attempt, program, endpoints, journal, tools, state, invocations, spans, maxTurns, maxToolCalls } = options
  const { signal } = attempt

  function declared(name = program.agents.length === 1 ? program.agents[0]!.name : functionAgent): AgentDeclaration {
    signal.throwIfAborted()
    const agent = program.agents.find((other) => other.name === name)
    if (agent) return agent
    const names = program.agents.map((other) => `"${other.name}"`).join(', ')
    throw new TrainError('AGENT_INVALID', `The program has no agent "${name}". It declares ${names}; name one of them.`)
  }

  const endpointAt = ({ name }: AgentDeclaration, place: string) => invocationEndpoint(endpoints[name]!, place)

  function invoke(name: string, options?: InvocationOptions): Invocation {
    const agent = declared(name)
    const { id, place } = invocations.start(agent.name, options)
    // The first invocation of the only agent is the attempt, which has a span.
    if (program.agents.length > 1 || place !== '') spans.start(id, agent.name)
    return {
      id,
      agent: agent.name,
      place,
      policy: () => endpointAt(agent, place),
      tools: async () => tools.tools(declared(name), id),
      runTool: async (call, run) => journal.run({ agent: declared(name).name, trajectory: id, ...call, isFunction: true }, run),
      end(answered) {
        invocations.end(id, answered)
        spans.end(id, answered)
      },
    }
  }

  return {
    ...attempt,
    limits: { maxTurns, maxToolCalls },
    policy(name, place) {
      const agent = declared(name)
      return endpointAt(agent, invocations.at(agent.name, place).place)
    },
    async tools(name, place) {
      const agent = declared(name)
      return tools.tools(agent, invocations.at(agent.name, place).id)
    },
    state,
    invoke,
    async runTool(name, call, run, place) {
      const agent = declared(name).name
      return journal.run({ agent, trajectory: invocations.at(agent, place).id, ...call, isFunction: true }, run)
    },
  }
}
