import { createHash } from 'node:crypto'
import type { RandomKey } from '@aworld-train/core'

/** A seed of 48 bits for a call. The same key draws the same tokens, whatever else runs. */
export function toSeed({ seed, task, sample, turn }: RandomKey): number {
  return createHash('sha256')
    .update(JSON.stringify([seed, task, sample, turn]))
    .digest()
    .readUIntBE(0, 6)
}
