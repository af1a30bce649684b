import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** How many ids are taken in turn. */
const range = 10_000

/**
 * Ids of users that exist nowhere else, one for each workspace: the kernel counts processes by user, and root's it does not bound.
 * Undefined where this process is not root, or root over few: its workspaces run as its own user.
 */
export function createUserIds(mapping = readMapping()): () => number | undefined {
  if (process.getuid?.() !== 0) return () => undefined
  // Above what distributions and containers hand out, or in a container that has fewer, below the highest.
  const top = Math.min(highest(mapping), 2_000_000_000) - range
  if (top < 2 * range) return () => undefined
  let next = randomInt(range)
  return () => top - (next++ % range)
}

/** The ids that this process's user namespace has: lines of first id inside, first id outside, and how many. */
function readMapping(): string {
  return readFileSync('/proc/self/uid_map', 'utf8')
}

function highest(mapping: string): number {
  const ends = mapping
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .map(([inside = 0, , count = 0]) => inside + count - 1)
  return Math.max(...ends)
}
