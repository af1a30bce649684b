import { hash } from 'node:crypto'
import type { RandomKey, SessionRequest } from '@aworld-train/core'

/** Mixes two 32-bit integers into one: the finaliser of MurmurHash3 over their sum, so that neighbours differ in all bits. */
function mix(first: number, second: number): number {
  let hash = (Math.imul(first, 0x9e3779b1) + second) | 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/**
 * The number of a prompt, which stands in the key of a call for its place where calls come in no certain order: 48 bits of its digest, and
 * how often it was asked before. `counts` keeps that.
 */
export function promptNumber({ buffer, byteOffset, byteLength }: Int32Array, counts: Map<number, number>): number {
  const digest = Number.parseInt(hash('sha256', Buffer.from(buffer, byteOffset, byteLength)).slice(0, 12), 16)
  const before = counts.get(digest) ?? 0
  counts.set(digest, before + 1)
  return digest + before
}

/**
 * The place of a call in the run. The sampling's own seed, unless it is 0, separates visits of one task. Agents of one
 * rollout are separated by name, and invocations of an agent by id. `turn` counts the calls of the invocation.
 */
export function toRandomKey(
  seed: number,
  { taskId, sample, sampling, agents }: SessionRequest,
  { id, name }: { readonly id: string; readonly name: string },
  turn: number,
): RandomKey {
  return {
    seed: sampling.seed === 0 ? seed : mix(seed, sampling.seed),
    task: agents.length > 1 || id !== name ? `${taskId}\n${id}` : taskId,
    sample,
    turn,
  }
}
