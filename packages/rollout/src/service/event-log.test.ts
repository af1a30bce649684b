import type { RunEvent } from '@aworld-train/protocol'
import { expect, test } from 'vitest'
import { createEventLog, type EventEntry } from './event-log.ts'

const event = (number: number, rollout = 'a'): RunEvent => ({ type: 'rollout-queued', at: number, rollout, split: 'train' })
const { signal } = new AbortController()

async function take(entries: AsyncGenerator<EventEntry, void, void>, count: number): Promise<(number | 'lost')[]> {
  const taken: (number | 'lost')[] = []
  while (taken.length < count) {
    const { done, value } = await entries.next()
    if (done) break
    taken.push('lost' in value ? 'lost' : value.event.at)
  }
  return taken
}

test('a reader gets what comes from now on, or all from the start, or all after an event', async () => {
  const log = createEventLog()
  for (const number of [1, 2, 3]) log.append(event(number))
  const fromNow = take(log.read({}, signal), 1)
  const { value } = await log.read({ after: '' }, signal).next()
  const id = (value as { id: string }).id
  log.append(event(4))
  expect(await fromNow).toEqual([4])
  expect(await take(log.read({ after: '' }, signal), 4)).toEqual([1, 2, 3, 4])
  expect(await take(log.read({ after: id }, signal), 3)).toEqual([2, 3, 4])
})

test('a reader that is too slow, or comes from another log, is told what it missed', async () => {
  const log = createEventLog({ kept: 10 })
  log.append(event(0))
  const slow = log.read({ after: '' }, signal)
  expect(await take(slow, 1)).toEqual([0])
  for (let number = 1; number <= 45; number++) log.append(event(number))
  const rest = await take(slow, 12)
  expect(rest[0]).toBe('lost')
  expect(rest.slice(1)).toEqual(Array.from({ length: 11 }, (_, index) => (rest[1] as number) + index))
  expect(rest[1]).toBeGreaterThanOrEqual(25)
  for (const after of ['other-3', 'nonsense', '-', `${'x'.repeat(8)}-99`])
    expect((await take(log.read({ after }, signal), 1))[0]).toBe('lost')
})

test('a filtered reader sees its rollout only, and ends when it has caught up after the end', async () => {
  const log = createEventLog()
  for (const [number, rollout] of [
    [1, 'a'],
    [2, 'b'],
    [3, 'a'],
  ] as const)
    log.append(event(number, rollout))
  const end = new AbortController()
  const reader = take(log.read({ rollout: 'a', after: '', end: end.signal }, signal), 9)
  await new Promise((resolve) => setImmediate(resolve))
  log.append(event(4, 'a'))
  end.abort()
  expect(await reader).toEqual([1, 3, 4])
})

test('readers end with their signal and with the log', async () => {
  const log = createEventLog()
  const controller = new AbortController()
  const [left, right] = [take(log.read({}, controller.signal), 1), take(log.read({}, signal), 1)]
  controller.abort()
  expect(await left).toEqual([])
  log.close()
  expect(await right).toEqual([])
})
