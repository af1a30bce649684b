import { type AgentAnswer, type Message, orAborted } from '@aworld-train/core'
import type { Agent } from './agent.ts'
import { inContext } from './in-context.ts'
import { countStep, messagesOf, type RunGraph, type StartedBy, type Transcript } from './program-run.ts'
import { runAgent } from './run-agent.ts'
import { aggregate, endsLoop, follows, loopPointOf } from './swarm/author-functions.ts'
import type { LoopableAgent } from './swarm/loopable-agent.ts'
import { isLoop, loopBody } from './swarm/loops.ts'
import { answerName, type GraphEdge, type GraphNode, isSwarm, toObjectText } from './swarm/swarm-types.ts'

/** What one node answered. */
interface NodeAnswer {
  /** `null` if the node, or one before it, gave none. */
  readonly answer: string | null
  readonly stopped?: AgentAnswer['stopped']
  /** Whether no edge led to the node. */
  readonly isSkipped?: boolean
  /** The invocations that the answer comes from. */
  readonly startedBy: StartedBy
  /** Number of answers on the longest way to this one. */
  readonly depth: number
}

/** What a node gets from one before it. */
interface Arrival extends NodeAnswer {
  readonly name: string
}

interface Ask {
  readonly place: string
  readonly startedBy: StartedBy
  readonly transcript: Transcript
}

/**
 * Runs a graph. A node starts when all before it have answered, with their answers; the answer of the leaf is the graph's. Nothing follows a
 * node without an answer. A node that fails aborts the others.
 */
export const runGraph: RunGraph = async ({ nodes, leaf }, start, run, outer) => {
  const siblings = new AbortController()
  const signal = AbortSignal.any([outer, siblings.signal])
  const answers = new Map<GraphNode, Promise<NodeAnswer>>()
  const starts = new Map<GraphNode, number>()

  const answerOf = (node: GraphNode): Promise<NodeAnswer> => answers.get(node) ?? begin(node)
  const begin = (node: GraphNode, handedOn?: NodeAnswer): Promise<NodeAnswer> => {
    const work = Promise.resolve().then(() => (isLoop(node.work) ? loop(node, node.work, handedOn) : once(node, handedOn)))
    const answer = orAborted(work, signal)
    answer.catch((error) => siblings.abort(error))
    answers.set(node, answer)
    return answer
  }

  /** Runs what lies between the loop point and the node, until the loop ends. */
  const loop = async (node: GraphNode, agent: LoopableAgent, handedOn?: NodeAnswer): Promise<NodeAnswer> => {
    let last = await once(node, handedOn)
    for (let runTimes = 1; last.answer !== null; runTimes += 1) {
      const loopRun = { answer: last.answer, runTimes }
      if (await orAborted(endsLoop(agent, loopRun), signal)) break
      const point = await orAborted(loopPointOf(node, agent, loopRun), signal)
      for (const inner of loopBody(point, node)) if (inner !== node) answers.delete(inner)
      if (point !== node) begin(point, last)
      last = await once(node, point === node ? last : undefined)
    }
    return last
  }

  const once = async (node: GraphNode, handedOn?: NodeAnswer): Promise<NodeAnswer> => {
    await Promise.all(node.after.map(answerOf))
    const arrivals = handedOn ? [{ ...handedOn, name: '' }] : (await Promise.all(node.before.map(arrival))).flat()
    const isFirst = node.before.length === 0 && !handedOn
    const depth = 1 + Math.max(0, ...arrivals.map((each) => each.depth))
    if (!isFirst && arrivals.length === 0) return { answer: null, isSkipped: true, startedBy: [], depth }
    const cut = arrivals.find(({ answer }) => answer === null)
    if (cut) return { answer: null, stopped: cut.stopped, startedBy: cut.startedBy, depth }
    const startedBy = isFirst ? start.startedBy : distinct(arrivals.flatMap((each) => each.startedBy))
    if (isSwarm(node.work)) {
      return { answer: await orAborted(aggregate(node.work, answersOf(arrivals)), signal), startedBy, depth }
    }
    if (node.swarms.some((swarm) => !countStep(run, swarm))) return { answer: null, stopped: 'turn-limit', startedBy, depth }
    const content = handedOn || node.before.length === 1 ? arrivals[0]?.answer : toObjectText(answersOf(arrivals))
    const input = isFirst ? start.input : [{ role: 'user' as const, content: content! }]
    const transcript = { messages: input, depth, node: nodes.indexOf(node) }
    run.transcripts.push(transcript)
    return ask(node.work, input, { place: nextPlace(node), startedBy, transcript })
  }

  const ask = (agent: Agent, input: readonly Message[], { place, startedBy, transcript }: Ask): Promise<NodeAnswer> => {
    const name = run.graph.nameOf(agent)
    const invoke = async (): Promise<NodeAnswer> => {
      const invocation = run.context.invoke(name, { place, startedBy })
      const { answer, stopped } = await runAgent(agent, input, run, { invocation, transcript, signal })
      return { answer, stopped, startedBy: [{ trajectory: invocation.id, toolCall: null }], depth: transcript.depth }
    }
    return inContext(run.context, invoke, name)
  }

  const arrival = async ({ from, condition }: GraphEdge): Promise<readonly Arrival[]> => {
    const before = await answerOf(from)
    const name = answerName(run.graph.nameOf(from.work), from.place)
    const isFollowed =
      !before.isSkipped &&
      (before.answer === null || !condition || (await orAborted(follows(condition, before.answer, `after "${name}"`), signal)))
    return isFollowed ? [{ ...before, name }] : []
  }

  /** Where the next start of a node stands: the starts of one agent are numbered. */
  const nextPlace = (node: GraphNode): string => {
    const earlier = starts.get(node) ?? 0
    starts.set(node, earlier + 1)
    const number = earlier * node.places + node.place
    if (number === 1) return start.place
    return start.place === '' ? `${number}` : `${start.place}-${number}`
  }

  await Promise.all(nodes.map(answerOf))
  const { answer, stopped } = await answerOf(leaf)
  return { answer, messages: messagesOf(run), ...(stopped && { stopped }) }
}

const distinct = (starts: StartedBy): StartedBy =>
  starts.filter(({ trajectory }, index) => starts.findIndex((other) => other.trajectory === trajectory) === index)

const answersOf = (arrivals: readonly Arrival[]) => arrivals.map(({ name, answer }) => [name, answer!] as const)
