import { describe, expect, test } from 'vitest'
import { CallQueues } from './call-queues.ts'

/** Queues of two replicas, and what became of each call by its name. */
function queues() {
  const waiting = new CallQueues<string>(2)
  const ends: string[] = []
  const add = (name: string, index: number | null, since = 0) =>
    waiting.add(index, {
      affinity: name,
      since,
      admit: (place) => void ends.push(`${name} at ${place}`),
      reject: (error) => void ends.push(`${name}: ${(error as Error).message}`),
    })
  const taken = (index: number, count: number) => Array.from({ length: count }, () => waiting.take(index)?.affinity ?? null)
  return { waiting, ends, add, taken }
}

describe('calls that wait', () => {
  test('are taken in order of arrival, whether they wait for this replica or for any', () => {
    const { waiting, add, taken } = queues()
    for (const [name, index] of [
      ['a', null],
      ['b', 0],
      ['c', 1],
      ['d', 0],
      ['e', null],
    ] as const)
      add(name, index)
    expect([waiting.size, waiting.count(0), waiting.count(1)]).toEqual([5, 2, 1])
    expect(taken(0, 3)).toEqual(['a', 'b', 'd'])
    expect(taken(1, 3)).toEqual(['c', 'e', null])
    expect([waiting.size, waiting.has(0), waiting.has(1)]).toEqual([0, false, false])
  })

  test('of a lost replica wait for any, still in order of arrival', () => {
    const { waiting, add, taken } = queues()
    for (const [name, index] of [
      ['a', 0],
      ['b', null],
      ['c', 0],
      ['d', null],
    ] as const)
      add(name, index)
    waiting.unpin([0])
    expect(waiting.count(0)).toBe(0)
    expect(taken(1, 4)).toEqual(['a', 'b', 'c', 'd'])
  })

  test('are gone once they were taken out, also after they lost their replica', () => {
    const { waiting, add } = queues()
    const [leave, leaveLater] = [add('a', 0), add('b', 0)]
    leave()
    waiting.unpin([0])
    expect(waiting.size).toBe(1)
    leaveLater()
    expect([waiting.size, waiting.since]).toEqual([0, null])
  })

  test('say since when the oldest of all queues waits', () => {
    const { waiting, add } = queues()
    expect(waiting.since).toBeNull()
    add('a', 1, 30)
    add('b', null, 20)
    expect(waiting.since).toBe(20)
  })

  test('for any replica are rejected after their time, and others are not', () => {
    const { waiting, ends, add } = queues()
    add('a', null, 10)
    add('b', 0, 10)
    add('c', null, 30)
    waiting.expire(20, () => new Error('too long'))
    expect(ends).toEqual(['a: too long'])
    waiting.rejectAll(new Error('closed'))
    expect(ends.slice(1).sort()).toEqual(['b: closed', 'c: closed'])
    expect(waiting.size).toBe(0)
  })
})
