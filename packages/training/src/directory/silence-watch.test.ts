import type { RunningAttempt } from '@aworld-train/rollout'
import { expect, it } from 'vitest'
import { createSilenceWatch } from './silence-watch.ts'

/** A runner whose clock stands still until it is moved. */
function watched() {
  const state = { queued: 0, running: 0, finished: 0, slots: 0, oldest: null as RunningAttempt | null, now: 0 }
  const lines: string[] = []
  const runner = { counts: () => state as never, slots: () => state.slots, oldest: () => state.oldest }
  const look = createSilenceWatch(
    runner,
    (line) => lines.push(line),
    () => state.now,
  )
  const after = (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 2) {
      state.now += 2_000
      look()
    }
    return lines.splice(0)
  }
  return { state, after }
}

it('says after a minute that no worker has come, and again after twice the time', () => {
  const { state, after } = watched()
  expect(after(200)).toEqual([])
  state.queued = 3
  expect(after(58)).toEqual([])
  expect(after(4)).toEqual([
    'No worker is connected, and 3 rollouts have waited for 60 s: look at what its launcher printed, and at what a worker prints, which says why it cannot connect.',
  ])
  expect(after(56)).toEqual([])
  expect(after(4)).toEqual([expect.stringContaining('have waited for 120 s')])
  expect(after(100)).toEqual([])
})

it('names the rollout that has run longest, with its worker, its tool and their ages; one that ends begins the time anew', () => {
  const { state, after } = watched()
  const call = { key: 'a', attempt: 1, tool: 'bash', openMs: 61_400 }
  Object.assign(state, { running: 2, queued: 1, slots: 2, oldest: { key: 'a', attempt: 1, worker: 'gpu-1', runningMs: 65_000, call } })
  expect(after(62)).toEqual([
    'No rollout has ended for 60 s: 2 run, 1 wait. "a", attempt 1, has run longest, 65 s on worker "gpu-1", in its tool "bash" for 61 s. limits.timeoutMs says how long an attempt may take.',
  ])
  state.finished = 1
  expect(after(60)).toEqual([])
  state.oldest = { key: 'b', attempt: 0, worker: null, runningMs: 62_000, call: null }
  expect(after(4)).toEqual([
    'No rollout has ended for 60 s: 2 run, 1 wait. "b", attempt 0, has run longest, 62 s, in no tool: its model or its own code is waited for. limits.timeoutMs says how long an attempt may take.',
  ])
  Object.assign(state, { running: 0, queued: 0, oldest: null })
  expect(after(500)).toEqual([])
})
