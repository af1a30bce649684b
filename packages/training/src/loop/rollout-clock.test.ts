import { expect, it } from 'vitest'
import { createRolloutClock } from './rollout-clock.ts'

it('counts the part of the slots that rollouts take, and no more than there are', () => {
  let at = 0
  let slots = 2
  const clock = createRolloutClock(
    () => slots,
    undefined,
    () => at,
  )
  for (let i = 0; i < 3; i++) clock.begin()
  at = 100
  clock.end({ startedAt: 0, endedAt: 100 })
  clock.end({ startedAt: 0, endedAt: 100 })
  at = 200
  expect(clock.slotsUsed()).toBe((200 + 100) / 400)
  clock.restart()
  at = 300
  expect(clock.slotsUsed()).toBe(0.5)
  // A worker is lost.
  slots = 1
  at = 400
  expect(clock.slotsUsed()).toBe((100 + 100) / (200 + 100))
})

it('compares how long trained rollouts took with all that ended, those of earlier processes included', () => {
  const clock = createRolloutClock(() => 8, { ms: 100, rollouts: 1 })
  expect(clock.durationRatio()).toBe(1)
  for (const endedAt of [100, 100, 300]) {
    clock.begin()
    clock.end({ startedAt: 0, endedAt })
  }
  clock.begin()
  clock.end(null)
  clock.train([
    { startedAt: 0, endedAt: 100 },
    { startedAt: 0, endedAt: 100 },
  ])
  expect(clock.trained()).toEqual({ ms: 300, rollouts: 3 })
  expect(clock.durationRatio()).toBe(100 / 150)
})
