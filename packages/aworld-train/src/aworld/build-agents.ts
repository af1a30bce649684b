import { Agent, Swarm } from '@aworld-train/agent'
import { errorMessage, TrainError, withDeadline } from '@aworld-train/core'
import { AworldAgentLoop } from './agent-loop.ts'

/** Longest time for building agents, which loads modules but no model. */
const defaultTimeoutMs = 60_000

/** Whether a value is a class that extends AworldAgentLoop. */
export function isAgentLoopClass(value: unknown): value is new () => AworldAgentLoop {
  return typeof value === 'function' && value.prototype instanceof AworldAgentLoop
}

/** Throws AGENT_INVALID for a loop in the shape of Python, with `build_agents`, and for one that does not extend AworldAgentLoop. */
export function refuseOtherLoop(value: unknown): void {
  const holder = typeof value === 'function' ? (value.prototype as unknown) : value
  if (typeof holder !== 'object' || holder === null) return
  const method = ['build_agents', 'buildAgents'].find((name) => typeof (holder as Record<string, unknown>)[name] === 'function')
  const isLoop = holder instanceof AworldAgentLoop
  if (method === undefined || (isLoop && typeof holder.buildAgents === 'function')) return
  const name = (typeof value === 'function' ? value.name : holder.constructor.name) || 'The agent'
  const remedies = [
    ...(isLoop ? [] : ['let it extend AworldAgentLoop']),
    ...(method === 'buildAgents' ? [] : ['name the method "buildAgents"']),
  ]
  throw new TrainError('AGENT_INVALID', `${name} has "${method}"${isLoop ? '' : ' and is no AworldAgentLoop'}; ${remedies.join(', and ')}.`)
}

/** Awaits the result of `buildAgents`. AGENT_INVALID names the loop if it throws, returns no agent, or exceeds `timeoutMs`. */
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
