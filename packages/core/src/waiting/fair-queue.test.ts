import { expect, test } from 'vitest'
import { createFairQueue, type FairQueue } from './fair-queue.ts'

function taken(queue: FairQueue<string>): string[] {
  const items: string[] = []
  for (let item = queue.next(); item !== undefined; item = queue.next()) items.push(item)
  expect(queue.isEmpty()).toBe(true)
  return items
}

test('owners take turns, each in its own order', () => {
  const queue = createFairQueue<string>()
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']) queue.add(item[0], item)
  expect(taken(queue)).toEqual(['a1', 'b1', 'c1', 'a2', 'c2', 'a3'])
})

test('an owner that comes late waits for one item of each other', () => {
  const queue = createFairQueue<string>()
  for (let index = 0; index < 50; index += 1) queue.add('a', `a${index}`)
  expect([queue.next(), queue.next(), queue.isEmpty()]).toEqual(['a0', 'a1', false])
  queue.add('b', 'b0')
  expect([queue.next(), queue.next(), queue.next()]).toEqual(['a2', 'b0', 'a3'])
})

test('what was removed is not taken, and its owner has no empty turn', () => {
  const queue = createFairQueue<string>()
  for (const item of ['a1', 'a2', 'b1', 'c1']) queue.add(item[0], item)
  queue.remove('a', 'a1')
  queue.remove('b', 'b1')
  queue.remove('x', 'x1')
  expect(taken(queue)).toEqual(['a2', 'c1'])
})
