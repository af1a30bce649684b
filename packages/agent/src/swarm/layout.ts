import { TrainError } from '@aworld-train/core'
import { describeValue, readNamedOptions } from '../named-options.ts'
import { Group, isPart, type SwarmPart } from './group.ts'

/** Whether an edge is followed, by the answer of its left side. */
export type EdgeCondition = (answer: string) => boolean | Promise<boolean>

export interface SwarmEdgeOptions {
  /** The right side counts on the left one only where this returns true. Only in a workflow. */
  readonly condition?: EdgeCondition | undefined
}

/** Two parts of a swarm: the right one gets the answer of the left one (workflow), or is its tool (handoff, team). */
export type SwarmEdge = readonly [SwarmPart, SwarmPart] | readonly [SwarmPart, SwarmPart, SwarmEdgeOptions]

/** An argument of a swarm. */
export type SwarmEntry = SwarmPart | SwarmEdge | readonly SwarmEdge[]

export interface LayoutEdge {
  readonly from: SwarmPart
  readonly to: SwarmPart
  readonly condition: EdgeCondition | undefined
}

/** How the parts of a swarm were written: one after another, or as edges. */
export interface SwarmLayout {
  readonly parts: readonly SwarmPart[]
  readonly edges: readonly LayoutEdge[]
}

/** Name of a part for messages. */
export function describePart(part: SwarmPart): string {
  return part instanceof Group ? `${part.order}(${part.parts.map(describePart).join(', ')})` : part.name
}

/** Reads the arguments of a swarm. Throws CONFIG_INVALID for what is neither a part nor an edge, and for an edge that is written twice. */
export function readLayout(entries: readonly unknown[]): SwarmLayout {
  const parts: SwarmPart[] = []
  const edges: LayoutEdge[] = []
  for (const entry of entries) {
    if (isPart(entry)) parts.push(entry)
    else if (!Array.isArray(entry))
      throw new TrainError(
        'CONFIG_INVALID',
        `Swarm: expected an Agent, a Swarm, a group or an edge [from, to], got ${describeValue(entry)}.`,
      )
    else if (entry.length > 0 && entry.every((each) => Array.isArray(each))) edges.push(...entry.map(readEdge))
    else edges.push(readEdge(entry))
  }
  const double = edges.find(({ from, to }, index) => edges.findIndex((other) => other.from === from && other.to === to) !== index)
  if (double)
    throw new TrainError(
      'CONFIG_INVALID',
      `Swarm: the edge [${describePart(double.from)}, ${describePart(double.to)}] is written twice; keep one of them.`,
    )
  return { parts, edges }
}

function readEdge(entry: readonly unknown[]): LayoutEdge {
  const parts = entry.filter(isPart)
  if (parts.length !== 2 && parts.length === entry.length) {
    const names = parts.map(describePart).join(', ')
    throw new TrainError(
      'CONFIG_INVALID',
      `Swarm: an array is an edge [from, to], and [${names}] has ${parts.length} agents; write serial(${names}) for one after another, or parallel(${names}) for side by side.`,
    )
  }
  const [from, to, options = {}] = entry
  for (const side of [from, to]) {
    if (!isPart(side))
      throw new TrainError(
        'CONFIG_INVALID',
        `Swarm: an edge names ${describeValue(side)}, which is no agent; put the Agent or Swarm itself there.`,
      )
  }
  const described = `Swarm: the edge [${describePart(from as SwarmPart)}, ${describePart(to as SwarmPart)}]`
  if (entry.length > 3)
    throw new TrainError('CONFIG_INVALID', `${described} has ${entry.length} elements; write [from, to, { condition }].`)
  const { condition } = readNamedOptions(options, { owner: described, optionNames: ['condition'] }).options
  if (condition !== undefined && typeof condition !== 'function')
    throw new TrainError(
      'CONFIG_INVALID',
      `${described} has a condition that is ${describeValue(condition)}; pass a function of the answer.`,
    )
  return { from: from as SwarmPart, to: to as SwarmPart, condition: condition as EdgeCondition | undefined }
}
