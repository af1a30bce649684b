import { expect, it } from 'vitest'
import { createByteBudget } from './byte-budget.ts'

const { signal } = new AbortController()

it('begins what fits, in the order of arrival, and no small work before a large one that waits', async () => {
  const budget = createByteBudget(10)
  const begun: number[] = []
  const ends: (() => void)[] = []
  const run = (need: number, caller = signal) =>
    budget.run(
      need,
      () => {
        begun.push(need)
        return new Promise<void>((resolve) => ends.push(resolve))
      },
      caller,
    )
  const impatient = new AbortController()
  const all = [run(4), run(5)]
  const leaving = expect(run(6, impatient.signal)).rejects.toThrow('enough')
  all.push(run(1), run(99))
  await Promise.resolve()
  expect(begun).toEqual([4, 5])
  impatient.abort(new Error('enough'))
  await leaving
  expect(begun).toEqual([4, 5, 1])
  for (const end of ends.splice(0)) end()
  await Promise.all(all.slice(0, 3))
  await new Promise(setImmediate)
  expect(begun).toEqual([4, 5, 1, 99])
  ends[0]!()
  await all[3]
})
