import { expect, test } from 'vitest'
import { createBodyPool } from './body-pool.ts'

test('memory that was given back once is lent once, and only what was lent is taken back', () => {
  const pool = createBodyPool()
  const first = pool.take(100_000)!
  expect(first.length).toBe(131_072)
  expect(pool.take(100_000)!.buffer).not.toBe(first.buffer)
  const body = first.subarray(0, 100_000)
  pool.give(body)
  pool.give(body)
  const [again, other] = [pool.take(131_072)!, pool.take(131_072)!]
  expect(again.buffer).toBe(first.buffer)
  expect(other.buffer).not.toBe(first.buffer)
  const foreign = Buffer.alloc(131_072)
  pool.give(foreign)
  expect(pool.take(131_072)!.buffer).not.toBe(foreign.buffer)
})

test('small and very large bodies are not pooled, and no more is kept than may be', () => {
  const pool = createBodyPool(100_000)
  expect([pool.take(2048), pool.take(2_000_000), pool.take(0), pool.take(Number.NaN)]).toEqual([null, null, null, null])
  const [one, two] = [pool.take(65_536)!, pool.take(65_536)!]
  pool.give(one)
  pool.give(two)
  expect([pool.take(65_536)!.buffer === one.buffer, pool.take(65_536)!.buffer === two.buffer]).toEqual([true, false])
})
