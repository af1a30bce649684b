import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRecordTokens } from './record-tokens.ts'

const ids = fc.array(fc.integer({ min: 0, max: 1_000_000 }), { maxLength: 20 })

test('every call of a tree has its own ids, also when later ones have been added behind and beside it', () => {
  const call = fc.record({ parent: fc.nat({ max: 20 }), isLast: fc.boolean(), suffix: ids, completion: ids })
  fc.assert(
    fc.property(fc.array(call, { maxLength: 20 }), (calls) => {
      const tokens = createRecordTokens()
      const expected: { prompt: number[]; completion: number[] }[] = []
      const records = calls.map(({ parent: any, isLast, suffix, completion }, index) => {
        const parent = isLast ? index - 1 : any
        const previous = expected[parent]
        expected.push({ prompt: [...(previous ? [...previous.prompt, ...previous.completion] : []), ...suffix], completion })
        return tokens.add(index, previous ? parent : null, Int32Array.from(suffix), Int32Array.from(completion))
      })
      expect(records.map((each) => [[...each.promptTokenIds], [...each.completionTokenIds]])).toEqual(
        expected.map(({ prompt, completion }) => [prompt, completion]),
      )
    }),
    { numRuns: 300 },
  )
})

test('a conversation of many turns takes the memory of its last, not of all', () => {
  const tokens = createRecordTokens()
  const buffers = new Set<ArrayBufferLike>()
  for (let turn = 0; turn < 100; turn++) {
    buffers.add(tokens.add(turn, turn === 0 ? null : turn - 1, new Int32Array(900), new Int32Array(100)).promptTokenIds.buffer)
  }
  const bytes = Array.from(buffers, ({ byteLength }) => byteLength).reduce((sum, each) => sum + each, 0)
  expect(bytes).toBeLessThan(5 * 4 * 100_000)
})
