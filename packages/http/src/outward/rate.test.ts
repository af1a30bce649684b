import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createRate } from './rate.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())
const { signal } = new AbortController()
const tick = (ms: number) => vi.advanceTimersByTimeAsync(ms)

it('lets as many through at one time as may be, in the order of their arrival', async () => {
  const rate = createRate({ concurrent: 2 })
  const began: number[] = []
  const ends: (() => void)[] = []
  const all = [0, 1, 2, 3].map((number) =>
    rate.run(() => {
      began.push(number)
      return new Promise<void>((resolve) => ends.push(resolve))
    }, signal),
  )
  await tick(0)
  expect(began).toEqual([0, 1])
  ends[1]!()
  await tick(0)
  expect(began).toEqual([0, 1, 2])
  for (let index = 0; index < 4; index++) {
    ends[index]!()
    await tick(0)
  }
  await Promise.all(all)
  expect(rate.isIdle()).toBe(true)
})

it('begins no more requests within its span than it may', async () => {
  const rate = createRate({ concurrent: 9, span: { requests: 2, ms: 1000 } })
  let began = 0
  const all = Array.from({ length: 5 }, () => rate.run(async () => began++, signal))
  await tick(0)
  expect(began).toBe(2)
  await tick(999)
  expect(began).toBe(2)
  await tick(1)
  expect(began).toBe(4)
  await tick(1000)
  await Promise.all(all)
  expect(began).toBe(5)
})

it('holds everybody back while it is paused, and lets one who gives up go', async () => {
  const rate = createRate({ concurrent: 9 })
  rate.pause(500)
  expect(rate.isIdle()).toBe(false)
  let began = 0
  const giveUp = new AbortController()
  const waiting = rate.run(async () => began++, signal)
  const leaving = expect(rate.run(async () => began++, giveUp.signal)).rejects.toThrow('enough')
  giveUp.abort(new Error('enough'))
  await leaving
  await tick(499)
  expect(began).toBe(0)
  await tick(1)
  await waiting
  expect(began).toBe(1)
  expect(vi.getTimerCount()).toBe(0)
})
