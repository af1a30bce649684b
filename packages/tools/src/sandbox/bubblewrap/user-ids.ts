import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Number of ids that are used in turn. */
const range = 10_000

/**
 * User ids that nobody else has, one for each workspace, because the kernel counts processes by user and does not limit root's. Undefined
 * if this process is not root, or root over few ids: its workspaces then run as its own user.
 */
export function createUserIds(mapping = readMapping()): () => number | undefined {
  if (process.getuid?.() !== 0) return () => undefined
  // They lie above the ids that distributions and containers hand out or, in a container with fewer ids, below the highest.
  const top = Math.min(highest(mapping), 2_000_000_000) - range
  if (top < 2 * range) return () => undefined
  let next = randomInt(range)
  return () => top - (next++ % range)
}

/** The ids of this process's user namespace, as lines of first id inside, first id outside, and count. */
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
