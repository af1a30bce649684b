import type { GenerateResult } from '@aworld-train/core'
import { describe, expect, it } from 'vitest'
import { never, request, startTinyEngine, type TinyRequest } from '../testing/tiny-model.ts'

/** Rows of all lengths, some longer than the room of a step, with all ways of drawing. */
const calls: readonly TinyRequest[] = Array.from({ length: 24 }, (_, i) => ({
  task: `task-${i % 7}`,
  turn: i,
  affinity: `row-${i}`,
  prompt: Array.from({ length: 1 + ((i * 37) % 190) }, (__, j) => (j * (i % 3 === 0 ? 5 : i + 2) + 1) % 256),
  maxTokens: 1 + ((i * 5) % 20),
  temperature: [1, 0.6, 0, 1.5][i % 4]!,
  topK: i % 5 === 0 ? 9 : 0,
  topP: i % 6 === 0 ? 0.8 : 1,
}))

const bits = ({ tokenIds, logprobs }: GenerateResult): unknown => ({
  ids: Array.from(tokenIds),
  bits: Array.from(new Uint32Array(logprobs.buffer)),
})

describe.each(['plain', 'relaxed'] as const)('a row, %s', (simd) => {
  it('has the same bits alone, in any batch, in any order, on any number of threads, from any cache', async () => {
    const shape = { contextLength: 256 }
    await using local = await startTinyEngine({ simd, shape, threads: 1, maxRows: 1 })
    const alone: unknown[] = []
    for (const call of calls) alone.push(bits(await local.engine.generate(request(call), never)))

    for (const { threads, maxRows, order } of [
      { threads: 1, maxRows: 24, order: 1 },
      { threads: 2, maxRows: 24, order: -1 },
      { threads: 3, maxRows: 5, order: 1 },
    ]) {
      await using batched = await startTinyEngine({ simd, shape, threads, maxRows })
      const inOrder = order > 0 ? [...calls.keys()] : [...calls.keys()].reverse()
      for (let round = 0; round < 2; round++) {
        const results = await Promise.all(inOrder.map(async (i) => [i, await batched.engine.generate(request(calls[i]!), never)] as const))
        for (const [i, result] of results) expect(bits(result)).toEqual(alone[i])
        if (round === 1) expect(results.some(([, { cachedTokens }]) => cachedTokens > 0)).toBe(true)
      }
    }
  })
})

describe('the random key', () => {
  it('decides by each of its parts', async () => {
    await using local = await startTinyEngine()
    const draw = async (change: Partial<ReturnType<typeof request>['random']>, seed = 0): Promise<string> => {
      const call = request({ seed, maxTokens: 24, temperature: 2 })
      return (await local.engine.generate({ ...call, random: { ...call.random, ...change } }, never)).tokenIds.join()
    }
    const texts = await Promise.all([draw({}), draw({ seed: 8 }), draw({ task: 'b' }), draw({ sample: 1 }), draw({ turn: 1 }), draw({}, 1)])
    expect(new Set(texts).size).toBe(texts.length)
    expect(await draw({})).toBe(texts[0])
  })
})
