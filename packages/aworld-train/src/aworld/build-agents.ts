import { Agent, Swarm } from '@aworld-train/agent'
import { withDeadline } from '@aworld-train/core'
import { errorMessage, TrainError } from '@aworld-train/protocol'
import { AworldAgentLoop } from './agent-loop.ts'

/** Longest time in which agents are built: that loads modules, but no model. */
const defaultTimeoutMs = 60_000

/** Whether a value is a class that extends AworldAgentLoop. */
export function isAgentLoopClass(value: unknown): value is new () => AworldAgentLoop {
  return typeof value === 'function' && value.prototype instanceof AworldAgentLoop
}

/** What `buildAgents` returns, awaited; AGENT_INVALID names the loop where it throws, returns no agent, or not within `timeoutMs`. */
export async function buildAgents(
  source: AworldAgentLoop | (new () => AworldAgentLoop),
  { timeoutMs = defaultTimeoutMs }: { readonly timeoutMs?: number | undefined } = {},
): Promise<Agent | Swarm> {
  const name = (typeof source === 'function' ? source.name : source.constructor.name) || 'AworldAgentLoop'
  const invalid = (what: string, cause?: unknown) => new TrainError('AGENT_INVALID', `${name}.buildAgents() ${what}`, { cause })
  const late = () => invalid(`returned nothing within ${timeoutMs} ms; build the agents without waiting for a server.`)
  let built: unknown
  try {
    const loop = typeof source === 'function' ? new source() : source
    built = await withDeadline(Promise.resolve(loop.buildAgents()), timeoutMs, late)
  } catch (error) {
    if (error instanceof TrainError) throw error
    throw invalid(`threw: ${errorMessage(error)}`, error)
  }
  if (built instanceof Agent || built instanceof Swarm) return built
  const returned =
    built === undefined || built === null ? `${built}` : Array.isArray(built) ? 'an array' : `a value of type ${typeof built}`
  throw invalid(`returned ${returned}; return an Agent, or a Swarm of agents.`)
}
