import fc from 'fast-check'
import { expect, test } from 'vitest'
import { turnOf } from './testing/run-fixtures.ts'
import { fromTurnRecord, toTurnRecord } from './turn-record.ts'

const ids = fc.array(fc.nat(2 ** 31 - 1), { maxLength: 40 })

test('every turn reads back as it was, with any parent or none', () => {
  fc.assert(
    fc.property(ids, ids, ids, ids, fc.boolean(), (prompt, completion, added, sampled, extend) => {
      const parent = turnOf({ index: 0, parent: null, prompt, completion })
      const start = extend ? [...prompt, ...completion] : prompt.slice(1)
      const turn = turnOf({ index: 1, parent: 0, prompt: [...start, ...added], completion: sampled })
      const record = toTurnRecord(turn, parent)
      if (extend) expect(record.prefixLength).toBe(prompt.length + completion.length)
      expect(record.bytes.byteLength).toBe(4 * (record.suffixLength + 2 * record.completionLength))
      expect(fromTurnRecord(record.body, record, record.bytes.slice(), () => parent)).toEqual(turn)
      const alone = toTurnRecord(turn, null)
      expect(fromTurnRecord(alone.body, alone, alone.bytes, () => undefined)).toEqual(turn)
    }),
  )
})

test('is little-endian: suffix, completion, logprobs', () => {
  const { bytes } = toTurnRecord(turnOf({ index: 0, parent: null, prompt: [1, 258], completion: [3] }), null)
  expect(Buffer.from(bytes).toString('hex')).toBe('01000000 02010000 03000000 000000bf'.replaceAll(' ', ''))
})

test('keeps the exact bits of a logprob', () => {
  const turn = { ...turnOf({ index: 0, parent: null, prompt: [1], completion: [1, 2, 3, 4] }) }
  turn.rolloutLogprobs = Float32Array.from([-0, -1e-45, -3.4e38, Number.NEGATIVE_INFINITY])
  const record = toTurnRecord(turn, null)
  expect(fromTurnRecord(record.body, record, record.bytes, () => undefined).rolloutLogprobs).toEqual(turn.rolloutLogprobs)
})

test('views into larger arrays are read at their place', () => {
  const turn = { ...turnOf({ index: 0, parent: null, prompt: [], completion: [5, 6] }) }
  turn.promptTokenIds = Int32Array.from([9, 9, 1, 2, 9]).subarray(2, 4)
  const record = toTurnRecord(turn, null)
  expect(Array.from(fromTurnRecord(record.body, record, record.bytes, () => undefined).promptTokenIds)).toEqual([1, 2])
})

test('turns of one memory go on from each other where the same place holds both, and not where they only touch', () => {
  const memory = Int32Array.from([1, 2, 3, 4, 5, 6])
  const parent = { ...turnOf({ index: 0, parent: null, prompt: [], completion: [0] }) }
  parent.promptTokenIds = memory.subarray(0, 2)
  parent.completionTokenIds = memory.subarray(2, 3)
  const prefixOf = (prompt: Int32Array) => {
    const turn = { ...turnOf({ index: 1, parent: 0, prompt: [], completion: [6] }), promptTokenIds: prompt }
    return toTurnRecord(turn, parent).prefixLength
  }
  expect([memory.subarray(0, 5), memory.subarray(0, 3), memory.subarray(0, 2), memory.subarray(1, 5)].map(prefixOf)).toEqual([3, 3, 0, 0])
  parent.completionTokenIds = memory.subarray(3, 4)
  expect(prefixOf(memory.subarray(0, 5))).toBe(0)
})

test('a turn with more tokens than logprobs is a mistake of the caller', () => {
  const turn = { ...turnOf({ index: 0, parent: null, prompt: [], completion: [5, 6] }), rolloutLogprobs: new Float32Array(1) }
  expect(() => toTurnRecord(turn, null)).toThrow('2 sampled tokens and 1 logprobs')
})
