import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTokenPrefixes } from './token-prefixes.ts'

const ids = fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 12 }).map((list) => Int32Array.from(list))
const begins = (whole: Int32Array, prefix: Int32Array) => prefix.length <= whole.length && prefix.every((id, index) => whole[index] === id)

test('the longest known conversation that begins the prompt is found, the latest of equals', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(ids, ids), { maxLength: 12 }), ids, (calls, prompt) => {
      const prefixes = createTokenPrefixes()
      let best: { call: number; length: number } | null = null
      for (const [call, [before, sampled]] of calls.entries()) {
        prefixes.add(call, before, sampled, call)
        const whole = Int32Array.from([...before, ...sampled])
        if (whole.length > 0 && begins(prompt, whole) && whole.length >= (best?.length ?? 0)) best = { call, length: whole.length }
      }
      expect(prefixes.match(prompt)?.call ?? null).toBe(best?.call ?? null)
    }),
    { numRuns: 500 },
  )
})
