import { TrainError } from '@aworld-train/core'
import type { Agent } from '../agent.ts'
import { collectAgents } from '../collect-agents.ts'
import { LoopableAgent } from './loopable-agent.ts'
import { type GraphNode, isSwarm, type SwarmShape } from './swarm-types.ts'

export const isLoop = (work: Agent | SwarmShape): work is LoopableAgent => work instanceof LoopableAgent

/** `node` and all that come before it, the nearest first. */
export function upTo(node: GraphNode): ReadonlySet<GraphNode> {
  const found = new Set([node])
  for (const each of found) for (const { from } of each.before) found.add(from)
  return found
}

/** The node that a loop goes back to: the nearest of this name at or before it. */
export function findLoopPoint(loop: GraphNode, name: string | undefined): GraphNode | undefined {
  if (name === undefined) return loop
  return [...upTo(loop)].find(({ work }) => !isSwarm(work) && work.name === name)
}

/** The nodes that run again: those between the point and the loop, both among them. */
export function loopBody(point: GraphNode, loop: GraphNode): readonly GraphNode[] {
  return [...upTo(loop)].filter((node) => upTo(node).has(point))
}

/**
 * Finds what waits for the end of a loop. Throws CONFIG_INVALID for a loop point that is not before its loop, and for loops that overlap or
 * wait for each other.
 */
export function placeLoops(nodes: readonly GraphNode[]): void {
  const bodies = new Map<GraphNode, ReadonlySet<GraphNode>>()
  for (const node of nodes) {
    const { work } = node
    if (!isLoop(work)) continue
    const point = findLoopPoint(node, work.loopPoint)
    if (!point) {
      const names = collectAgents([...upTo(node)].map((each) => each.work).filter((each) => !isSwarm(each))).map(({ name }) => name)
      throw invalid(
        `LoopableAgent "${work.name}" goes back to "${work.loopPoint}", which is not before it; before it are: ${names.join(', ')}.`,
      )
    }
    bodies.set(node, work.loopPointFinder ? upTo(node) : new Set(loopBody(point, node)))
  }
  for (const [loop, body] of bodies) {
    for (const [other, otherBody] of bodies) {
      const shared = [...body].filter((node) => otherBody.has(node)).length
      if (shared === 0 || shared === body.size || shared === otherBody.size) continue
      throw invalid(
        `the loops of "${loop.work.name}" and "${other.work.name}" overlap; put one of them inside the other, or let one follow the other.`,
      )
    }
  }
  for (const node of nodes) {
    node.after = [...bodies].filter(([, body]) => !body.has(node) && node.before.some(({ from }) => body.has(from))).map(([loop]) => loop)
  }
  const waiting = [...bodies.keys()].filter((loop) => waitedFor(loop).has(loop))
  if (waiting.length > 0) {
    const names = waiting.map(({ work }) => `"${work.name}"`).join(' and ')
    throw invalid(
      `the loops of ${names} wait for each other to end; write parallel(serial(…), serial(…)), each with one loop and what it repeats.`,
    )
  }
}

/** The nodes that must have answered, or ended their loop, before `node` starts. */
function waitedFor(node: GraphNode): ReadonlySet<GraphNode> {
  const nextTo = ({ before, after }: GraphNode) => [...before.map(({ from }) => from), ...after]
  const found = new Set(nextTo(node))
  for (const each of found) for (const next of nextTo(each)) found.add(next)
  return found
}

const invalid = (message: string) => new TrainError('CONFIG_INVALID', `Swarm: ${message}`)
