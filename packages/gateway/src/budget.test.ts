import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createBudget } from './budget.ts'

const never = new AbortController().signal

test('a call holds what it may use, and what is left where no other call holds anything', () => {
  let spent = 0
  const budget = createBudget(10, () => spent)
  expect([budget.tryHold(4), budget.tryHold(4), budget.tryHold(4)]).toEqual([4, 4, null])
  spent += 1
  budget.release(4)
  expect([budget.tryHold(6), budget.tryHold(5)]).toEqual([null, 5])
  budget.release(4)
  budget.release(5)
  expect(budget.tryHold(100)).toBe(9)
  spent += 9
  budget.release(9)
  expect(budget.tryHold(1)).toBe(0)
})

test('what is spent in the meantime is heard at once, also while others hold something', () => {
  let spent = 0
  const budget = createBudget(10, () => spent)
  expect(budget.tryHold(10)).toBe(10)
  spent = 11
  expect(budget.tryHold(1)).toBe(0)
})

test('those that wait are served in their order, and who leaves makes place for those behind', async () => {
  let spent = 0
  const budget = createBudget(10, () => spent)
  const first = budget.tryHold(8)!
  const order: string[] = []
  const leaving = new AbortController()
  const ask = (name: string, most: number, signal = never) =>
    budget.hold(most, signal).then(
      (amount) => order.push(`${name} ${amount}`),
      (reason) => order.push(`${name} ${reason}`),
    )
  const all = [ask('large', 9, leaving.signal), ask('small', 2), ask('late', 9)]
  expect([budget.waiting(), budget.tryHold(1)]).toEqual([3, null])
  leaving.abort('left')
  await Promise.all(all.slice(0, 2))
  expect(order).toEqual(['large left', 'small 2'])
  spent += 8
  budget.release(first)
  expect(budget.waiting()).toBe(1)
  spent += 1
  budget.release(2)
  await all[2]
  expect(order.at(-1)).toBe('late 1')
  await expect(budget.hold(1, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone')
  expect(budget.waiting()).toBe(0)
})

test('sums of dollars that are not exact leave no call waiting', async () => {
  let spent = 0
  const budget = createBudget(1, () => spent)
  const amounts = [0.1, 0.2, 0.3].map((most) => budget.tryHold(most)!)
  const waiting = budget.hold(5, never)
  for (const each of amounts) budget.release(each)
  expect(await waiting).toBe(1)
  spent = 0.5
  budget.release(1)
  expect(budget.tryHold(2)).toBe(0.5)
})

test('calls that use no more than they hold never pass the limit, and every call is served', async () => {
  const call = fc.record({
    most: fc.integer({ min: 1, max: 40 }),
    used: fc.double({ min: 0, max: 1, noNaN: true }),
    ticks: fc.integer({ min: 0, max: 4 }),
    leaves: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 20 }), fc.integer({ min: 1, max: 60 }), async (calls, limit) => {
      let spent = 0
      const budget = createBudget(limit, () => spent)
      await Promise.all(
        calls.map(async ({ most, used, ticks, leaves }) => {
          const abort = new AbortController()
          const request = budget.tryHold(most) ?? budget.hold(most, abort.signal)
          if (leaves) abort.abort()
          const amount = await Promise.resolve(request).catch(() => null)
          if (amount === null) return
          expect(amount).toBeLessThanOrEqual(limit - spent)
          if (amount < most) expect(amount === 0 ? spent : amount + spent).toBe(limit)
          for (let tick = 0; tick < ticks; tick++) await null
          spent += Math.floor(used * amount)
          budget.release(amount)
        }),
      )
      expect(spent).toBeLessThanOrEqual(limit)
      expect(budget.waiting()).toBe(0)
    }),
    { numRuns: 200 },
  )
})
