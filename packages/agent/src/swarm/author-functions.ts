import { errorMessage, TrainError } from '@aworld-train/core'
import { describeValue } from '../named-options.ts'
import type { EdgeCondition } from './layout.ts'
import type { LoopableAgent, LoopRun } from './loopable-agent.ts'
import { findLoopPoint } from './loops.ts'
import type { GraphNode, SwarmShape } from './swarm-types.ts'

/** Calls a function that the author of a swarm wrote. Throws AGENT_FAILED if it throws, or returns something else than it must. */
async function callAuthor<Value extends string | boolean>(
  what: string,
  expected: 'string' | 'boolean',
  call: () => unknown,
): Promise<Value> {
  let returned: unknown
  try {
    returned = await call()
  } catch (error) {
    throw new TrainError('AGENT_FAILED', `${what} threw: ${errorMessage(error)}`, { cause: error })
  }
  if (typeof returned === expected) return returned as Value
  throw new TrainError(
    'AGENT_FAILED',
    `${what} returned ${describeValue(returned)}; return ${expected === 'string' ? 'a text' : 'true or false'}.`,
  )
}

export const aggregate = (swarm: SwarmShape, answers: readonly (readonly [string, string])[]): Promise<string> => {
  const names = answers.map(([name]) => name)
  return callAuthor(`The aggregate function of "${swarm.name}"`, 'string', () =>
    swarm.aggregateFunc!(swarm, Object.fromEntries(answers), names),
  )
}

export const follows = (condition: EdgeCondition, answer: string, edge: string): Promise<boolean> =>
  callAuthor(`The condition of the edge ${edge}`, 'boolean', () => condition(answer))

/** Whether a loop ends with this run. */
export async function endsLoop(agent: LoopableAgent, run: LoopRun): Promise<boolean> {
  if (run.runTimes >= agent.maxRunTimes) return true
  if (!agent.stopFunc) return false
  return callAuthor(`The stop function of "${agent.name}"`, 'boolean', () => agent.stopFunc!(agent, run))
}

/** The node that a loop goes back to after this run. */
export async function loopPointOf(node: GraphNode, agent: LoopableAgent, run: LoopRun): Promise<GraphNode> {
  const finder = agent.loopPointFinder
  const what = `The loop point finder of "${agent.name}"`
  const name = finder ? await callAuthor<string>(what, 'string', () => finder(agent, run)) : agent.loopPoint
  const point = findLoopPoint(node, name)
  if (point) return point
  throw new TrainError(
    'AGENT_FAILED',
    `${what} returned "${name}", which is no agent at or before "${agent.name}"; return the name of one.`,
  )
}
