import { once } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createWorkspaceThreads } from './workspace-threads.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

test('a thread that waits is taken again, and one that nobody takes for half a minute ends', async () => {
  const threads = createWorkspaceThreads()
  const [first, second] = [threads.take(1), threads.take(1)]
  threads.giveBack(first, 1)
  vi.advanceTimersByTime(20_000)
  threads.giveBack(second, 1)
  expect(threads.take(1)).toBe(second)
  const ended = once(first, 'exit')
  vi.advanceTimersByTime(20_000)
  await ended
  threads.giveBack(second, 1)
  expect(threads.take(1)).toBe(second)
  expect(second.threadId).toBeGreaterThan(0)
  threads.giveBack(second, 1)
  await threads.close()
  expect(second.threadId).toBe(-1)
})
