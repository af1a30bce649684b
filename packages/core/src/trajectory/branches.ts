import type { Turn } from '../protocol/turn.ts'

/** The root-to-leaf paths of a tree of turns, ordered by their leaves. Each path begins with the root. */
export function toBranches(turns: readonly Turn[]): Turn[][] {
  const byIndex = new Map(turns.map((turn) => [turn.index, turn]))
  const parents = new Set(turns.map((turn) => turn.parent))
  return turns.filter((turn) => !parents.has(turn.index)).map((leaf) => pathTo(leaf, byIndex))
}

function pathTo(leaf: Turn, byIndex: ReadonlyMap<number, Turn>): Turn[] {
  const path: Turn[] = []
  for (let turn: Turn | undefined = leaf; turn; turn = turn.parent === null ? undefined : byIndex.get(turn.parent)) {
    path.push(turn)
    if (path.length > byIndex.size) throw new RangeError(`Turn ${leaf.index} has a cycle among its parents.`)
  }
  return path.reverse()
}
