import {
  type Invocation,
  invocationPlace,
  isRecord,
  type Message,
  placeOfCall,
  type ToolCall,
  type ToolDefinition,
  type ToolResult,
  type Tools,
  TrainError,
} from '@aworld-train/core'
import type { Agent } from './agent.ts'
import type { Delegate } from './agent-graph.ts'
import { countStep, type ProgramRun } from './program-run.ts'
import { suggest } from './suggest.ts'
import { leadOf } from './swarm/calls.ts'
import { toSingleGraph } from './swarm/graph.ts'
import { isSwarm, type SwarmShape } from './swarm/swarm-types.ts'
import type { Tool } from './tool.ts'

type Arguments = Readonly<Record<string, unknown>>

type Entry =
  | { readonly kind: 'environment'; readonly definition: ToolDefinition }
  | { readonly kind: 'tool'; readonly definition: ToolDefinition; readonly tool: Tool }
  | { readonly kind: 'agent'; readonly definition: ToolDefinition; readonly delegate: Delegate }

/** Which call of which turn of its agent a tool call is, both counted from 0. */
export interface CallPlace {
  readonly turn: number
  readonly place: number
}

/** All tools that one agent may call in one invocation. */
export interface Toolset {
  readonly definitions: readonly ToolDefinition[]
  /** Runs a call. Mistakes of the model and errors that a tool reports are results with `isError`; a lost server or an abort rejects. */
  call(call: ToolCall, at: CallPlace, signal: AbortSignal): Promise<ToolResult>
  /** What to tell the first agent of a team that has asked the others less often than it must; `null` if it may answer. */
  reminder(): Message | null
}

const failed = (text: string): ToolResult => ({ content: `Error: ${text}`, isError: true })

/** Lists the leased tools, then the local ones, then the agents. Two tools of one name throw CONFIG_INVALID. */
export async function createToolset(agent: Agent, invocation: Invocation, run: ProgramRun): Promise<Toolset> {
  const { context, graph } = run
  const name = invocation.agent
  const leased: Tools | null = agent.mcpConfig ? await invocation.tools() : null
  const listed = leased ? await leased.list() : []
  const entries = new Map<string, Entry>()
  const add = (entry: Entry): void => {
    const taken = entries.get(entry.definition.name)
    if (taken) {
      const kinds = `one from the ${taken.kind}, one from the ${entry.kind}`
      throw new TrainError('CONFIG_INVALID', `Agent "${name}" has two tools named "${entry.definition.name}", ${kinds}; rename one.`)
    }
    entries.set(entry.definition.name, entry)
  }
  for (const definition of listed) add({ kind: 'environment', definition })
  for (const tool of agent.tools) add({ kind: 'tool', definition: tool.definition, tool })
  for (const delegate of graph.delegatesOf(agent)) {
    add({ kind: 'agent', definition: agentDefinition(graph.nameOf(delegate.to), descOf(delegate)), delegate })
  }
  const teams = graph.delegatesOf(agent).flatMap(({ swarm }) => (swarm?.kind === 'team' && leadOf(swarm) === agent ? [swarm] : []))
  const callCounts = new Map(teams.map((team) => [team, 0]))

  const carryOut = (entry: Entry, call: ToolCall, at: CallPlace, args: Arguments, signal: AbortSignal): Promise<ToolResult> => {
    if (entry.kind === 'environment') return leased!.call({ id: call.id, name: call.name, arguments: args }, signal)
    return invocation.runTool(call, async (limit) => {
      const both = limit === signal ? limit : AbortSignal.any([limit, signal])
      if (entry.kind === 'agent') {
        const count = (swarm: SwarmShape) => {
          const times = callCounts.get(swarm)
          if (times !== undefined) callCounts.set(swarm, times + 1)
        }
        return askDelegate(entry.delegate, args, { agent, invocation, call, at, count }, run, both)
      }
      const { rollout, attempt, task } = context
      const state = entry.tool.state && (await context.state(entry.tool.state))
      const file = (fileName: string) => context.file(fileName)
      return entry.tool.invoke(args, { rollout, attempt, task, file, signal: both, agent: name, callId: call.id, state })
    })
  }

  return {
    definitions: [...entries.values()].map((entry) => entry.definition),
    reminder() {
      const [team, times] = [...callCounts].find(([{ minCallNum }, count]) => count < minCallNum) ?? []
      if (!team) return null
      const content = `Ask the other agents before you answer, at least ${team.minCallNum} times; so far it was ${times}.`
      return { role: 'user', content }
    },
    async call(call, at, signal) {
      signal.throwIfAborted()
      const entry = entries.get(call.name)
      if (!entry) return invocation.runTool(call, async () => failed(unknownTool(call.name, [...entries.keys()])))
      const args = parseArguments(call)
      if (typeof args === 'string') return invocation.runTool(call, async () => failed(args))
      try {
        const result = await carryOut(entry, call, at, args, signal)
        return result.isError && result.content.trim() === '' ? failed(`"${call.name}" failed without a message.`) : result
      } catch (error) {
        signal.throwIfAborted()
        // The model can react to a slow call, but not to a lost server.
        if (error instanceof TrainError && error.code === 'TOOL_TIMEOUT') return failed(error.message)
        throw error
      }
    },
  }
}

/** Returns the parsed arguments, or what is wrong with them. An empty text and `null` are no arguments. */
function parseArguments({ name, arguments: text }: ToolCall): Arguments | string {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
    if (value === null || value === '') return {}
    return `the arguments of "${name}" are ${Array.isArray(value) ? 'an array' : JSON.stringify(value)?.slice(0, 80)}; write a JSON object.`
  } catch (error) {
    return `the arguments of "${name}" are not valid JSON: ${(error as Error).message}`
  }
}

function unknownTool(name: string, names: readonly string[]): string {
  if (names.length === 0) return `there is no tool "${name}"; there are no tools.`
  const near = suggest(name, names)
  return `there is no tool "${name}"; ${near ? `did you mean "${near}"? ` : ''}The tools are: ${names.join(', ')}.`
}

function agentDefinition(name: string, desc: string | undefined): ToolDefinition {
  return {
    name: name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64),
    description: desc ?? `Ask the agent "${name}".`,
    parameters: {
      type: 'object',
      properties: { content: { type: 'string', description: 'What the agent is to do, with everything it needs to know.' } },
      required: ['content'],
    },
  }
}

const descOf = ({ to }: Delegate) => to.desc ?? (isSwarm(to) && to.kind !== 'workflow' ? leadOf(to).desc : undefined)

interface Caller {
  readonly agent: Agent
  readonly invocation: Invocation
  readonly call: ToolCall
  readonly at: CallPlace
  /** Counts a call that reaches a member of this swarm. */
  count(swarm: SwarmShape): void
}

async function askDelegate(
  { to, swarm }: Delegate,
  { content }: Arguments,
  caller: Caller,
  run: ProgramRun,
  signal: AbortSignal,
): Promise<ToolResult> {
  if (typeof content !== 'string') return failed('"content" is missing; write what the agent is to do, as text.')
  const { graph } = run
  const name = graph.nameOf(to)
  const callers = [...run.callers, caller.agent]
  const times = callers.filter((participant) => participant === to).length
  if (swarm && times >= swarm.endlessThreshold)
    return failed(`"${name}" cannot be asked again here: it waits for this answer already, ${times} times over. Answer yourself.`)
  if (swarm && !countStep(run, swarm)) return failed(`the agents may start ${swarm.maxSteps} times, and have; answer with what you know.`)
  const number = graph.agents.indexOf(caller.agent)
  const place = placeOfCall({ agent: number, place: caller.invocation.place }, caller.at.turn, caller.at.place)
  if (!invocationPlace.test(place)) return failed(`"${name}" cannot be asked here: too many agents wait for one another. Answer yourself.`)
  if (swarm) caller.count(swarm)
  const startedBy = [{ trajectory: caller.invocation.id, toolCall: caller.call.id }]
  const steps = new Map(run.steps)
  if (isSwarm(to)) steps.delete(to)
  const { answer, stopped } = await run.runGraph(
    isSwarm(to) ? to.graph : toSingleGraph(to),
    { input: [{ role: 'user', content }], place, startedBy },
    { ...run, transcripts: [], steps, callers: isSwarm(to) ? [...callers, to] : callers },
    signal,
  )
  if (stopped) return failed(`agent "${name}" stopped at its limit of turns without an answer.`)
  return answer === null ? failed(`agent "${name}" gave no answer.`) : { content: answer, isError: false }
}
