import { createHash } from 'node:crypto'
import type { ModelDescription } from '@aworld-train/core'

export const toyModel: ModelDescription = {
  name: 'toy',
  directory: '/nowhere',
  contextLength: 256,
  vocabularySize: 64,
  stopTokenIds: [63],
}

/** Logprob of a token as a function of the weights, the token and its place, so that wrong weights are noticed. */
export function toyLogprob(weights: number, position: number, id: number, temperature = 1): number {
  const { [0]: byte = 0 } = createHash('sha1').update(`${weights}.${position}.${id}`).digest()
  return -((byte + 1) / 256) * (temperature || 1)
}

/** The token at a place, drawn by a seed. 63 stops. */
export function toyToken(seed: number, position: number): number {
  return createHash('sha1').update(`${seed}.${position}`).digest().readUInt16BE(0) % 64
}

/** Logprobs of rows under the weights, as a learner recomputes them. */
export function toyRecompute(weights: number): (rows: readonly Int32Array[], temperature: number) => Promise<Float32Array[]> {
  return async (rows, temperature) =>
    rows.map((row) => Float32Array.from(row, (id, position) => (position === 0 ? 0 : toyLogprob(weights, position, id, temperature))))
}
