import type { RunEvent } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { createEventFeed, type EventEntry } from './event-feed.ts'

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
  const feed = createEventFeed()
  for (const number of [1, 2, 3]) feed.append(event(number))
  const fromNow = take(feed.read({}, signal), 1)
  const { value } = await feed.read({ after: '' }, signal).next()
  const id = (value as { id: string }).id
  feed.append(event(4))
  expect(await fromNow).toEqual([4])
  expect(await take(feed.read({ after: '' }, signal), 4)).toEqual([1, 2, 3, 4])
  expect(await take(feed.read({ after: id }, signal), 3)).toEqual([2, 3, 4])
})

test('a reader that is too slow, or comes from another feed, is told what it missed', async () => {
  const feed = createEventFeed({ maxEvents: 10 })
  feed.append(event(0))
  const slow = feed.read({ after: '' }, signal)
  expect(await take(slow, 1)).toEqual([0])
  for (let number = 1; number <= 45; number++) feed.append(event(number))
  const rest = await take(slow, 12)
  expect(rest[0]).toBe('lost')
  expect(rest.slice(1)).toEqual(Array.from({ length: 11 }, (_, index) => (rest[1] as number) + index))
  expect(rest[1]).toBeGreaterThanOrEqual(25)
  for (const after of ['other-3', 'nonsense', '-', `${'x'.repeat(8)}-99`])
    expect((await take(feed.read({ after }, signal), 1))[0]).toBe('lost')
})

test('a filtered reader sees its rollout only, and ends when it has caught up after the end', async () => {
  const feed = createEventFeed()
  for (const [number, rollout] of [
    [1, 'a'],
    [2, 'b'],
    [3, 'a'],
  ] as const)
    feed.append(event(number, rollout))
  const end = new AbortController()
  const reader = take(feed.read({ rollout: 'a', after: '', end: end.signal }, signal), 9)
  await new Promise((resolve) => setImmediate(resolve))
  feed.append(event(4, 'a'))
  end.abort()
  expect(await reader).toEqual([1, 3, 4])
})

test('readers end with their signal and with the feed', async () => {
  const feed = createEventFeed()
  const controller = new AbortController()
  const [left, right] = [take(feed.read({}, controller.signal), 1), take(feed.read({}, signal), 1)]
  controller.abort()
  expect(await left).toEqual([])
  feed.close()
  expect(await right).toEqual([])
})
