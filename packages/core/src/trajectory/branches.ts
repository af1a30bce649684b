import type { Turn } from '../protocol/turn.ts'
import { overlap } from '../time/overlap.ts'

/** The root-to-leaf paths of a tree of turns, ordered by their leaves. Each path begins with the root. */
export function toBranches(turns: readonly Turn[]): Turn[][] {
  const byIndex = new Map(turns.map((turn) => [turn.index, turn]))
  const parents = new Set(turns.map((turn) => turn.parent))
  return turns.filter((turn) => !parents.has(turn.index)).map((leaf) => pathTo(leaf, byIndex))
}

/**
 * Branches in an order that does not depend on time: by their tokens where a program has several conversations, or calls that were under way
 * at once, because turns are numbered as they come. Others keep their order.
 */
export function inStableOrder(branches: readonly (readonly Turn[])[]): readonly (readonly Turn[])[] {
  const leaves = branches.map((path) => path.at(-1)!)
  const isConcurrent = leaves.some((leaf, i) => leaves.slice(i + 1).some((other) => overlap(leaf.timing, other.timing)))
  if (new Set(branches.map(([root]) => root)).size < 2 && !isConcurrent) return branches
  return branches.toSorted((one, other) => compareTokens(one.at(-1)!, other.at(-1)!))
}

function compareTokens(one: Turn, other: Turn): number {
  return compareTokenIds(one.promptTokenIds, other.promptTokenIds) || compareTokenIds(one.completionTokenIds, other.completionTokenIds)
}

function compareTokenIds(one: Int32Array, other: Int32Array): number {
  const at = one.findIndex((id, index) => id !== other[index])
  return at < 0 || at >= other.length ? one.length - other.length : one[at]! - other[at]!
}

function pathTo(leaf: Turn, byIndex: ReadonlyMap<number, Turn>): Turn[] {
  const path: Turn[] = []
  for (let turn: Turn | undefined = leaf; turn; turn = turn.parent === null ? undefined : byIndex.get(turn.parent)) {
    path.push(turn)
    if (path.length > byIndex.size) throw new RangeError(`Turn ${leaf.index} has a cycle among its parents.`)
  }
  return path.reverse()
}
