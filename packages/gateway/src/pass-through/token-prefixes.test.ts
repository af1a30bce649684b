import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTokenPrefixes } from './token-prefixes.ts'

const ids = fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 12 }).map((list) => Int32Array.from(list))
const begins = (whole: Int32Array, prefix: Int32Array) => prefix.length <= whole.length && prefix.every((id, index) => whole[index] === id)

test('the longest known conversation that begins the prompt is found, the latest of equals', () => {
  const call = fc.record({ prompt: ids, sampled: ids, goesOn: fc.boolean() })
  fc.assert(
    fc.property(fc.array(call, { maxLength: 12 }), (calls) => {
      const prefixes = createTokenPrefixes()
      const conversations: Int32Array[] = []
      let last = new Int32Array(0)
      for (const [index, { prompt: promptIds, sampled, goesOn }] of calls.entries()) {
        const prompt = goesOn ? Int32Array.from([...last, ...promptIds]) : promptIds
        let best: { call: number; length: number } | null = null
        for (const [call, whole] of conversations.entries()) {
          if (whole.length > 0 && begins(prompt, whole) && whole.length >= (best?.length ?? 0)) best = { call, length: whole.length }
        }
        const parent = prefixes.place({ call: index, promptTokenIds: prompt, completionTokenIds: sampled, messages: index })
        expect(parent && { call: parent.call, length: parent.length }).toEqual(best)
        conversations.push(Int32Array.from([...prompt, ...sampled]))
        last = prompt
      }
    }),
    { numRuns: 1000 },
  )
})
