import { expect, test } from 'vitest'
import { add, createCounters } from './counters.ts'

test('a tally takes any name, and not without end', () => {
  const { ignored } = createCounters()
  for (const name of ['__proto__', 'constructor', 'toString']) add(ignored, name)
  expect(Object.entries(ignored)).toEqual([
    ['__proto__', 1],
    ['constructor', 1],
    ['toString', 1],
  ])
  for (let index = 0; index < 10_000; index++) add(ignored, `name-${index}`)
  expect(Object.keys(ignored).length).toBeLessThan(300)
  expect(Object.values(ignored).reduce((sum, count) => sum + count, 0)).toBe(10_003)
})
