import { expect, test } from 'vitest'
import { createMemoryPool } from './memory-pool.ts'

test('memory that was given back once is lent once, and only what was lent is taken back', () => {
  const pool = createMemoryPool()
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
  const pool = createMemoryPool(100_000)
  expect([pool.take(2048), pool.take(3_000_000), pool.take(0), pool.take(Number.NaN)]).toEqual([null, null, null, null])
  const [one, two] = [pool.take(65_536)!, pool.take(65_536)!]
  pool.give(one)
  pool.give(two)
  expect([pool.take(65_536)!.buffer === one.buffer, pool.take(65_536)!.buffer === two.buffer]).toEqual([true, false])
})

test('memory that another thread had is lent again, and other memory is not', () => {
  const pool = createMemoryPool()
  const body = pool.take(100_000)!
  expect([pool.owns(body.subarray(0, 5)), pool.owns(Buffer.alloc(131_072))]).toEqual([true, false])
  const back = structuredClone(body.buffer, { transfer: [body.buffer as ArrayBuffer] }) as ArrayBuffer
  pool.takeBack(back)
  expect(pool.take(131_072)!.buffer).toBe(back)
  for (const size of [0, 1000, 100_000, 4 * 1024 * 1024]) {
    const foreign = new ArrayBuffer(size)
    pool.takeBack(foreign)
    expect(pool.take(Math.max(size, 20_000))?.buffer).not.toBe(foreign)
  }
})

test('memory that moved to another thread is not the pool’s when its caller gives it back', () => {
  const pool = createMemoryPool()
  const body = pool.take(100_000)!
  pool.lend(body)
  expect(pool.owns(body)).toBe(false)
  pool.give(body)
  expect(pool.take(100_000)!.buffer).not.toBe(body.buffer)
})
