import { expect, it } from 'vitest'
import { createIdleClock } from './idle-clock.ts'

it('counts the time in which rollouts run and no model call of theirs does', () => {
  let time = 0
  const clock = createIdleClock(() => time)
  const after = (ms: number) => {
    time += ms
    return clock
  }
  after(10).rollouts(1)
  after(3).calls(1)
  after(100).calls(1)
  after(100).calls(-1)
  after(100).calls(-1)
  after(4).rollouts(1)
  after(5).rollouts(-1)
  expect(after(1).take()).toBe(3 + 4 + 5 + 1)
  after(2).rollouts(-1)
  expect(after(1_000).take()).toBe(2)
})
