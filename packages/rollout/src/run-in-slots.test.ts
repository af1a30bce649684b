import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { runInSlots } from './run-in-slots.ts'

test('work begins in its order, as much at a time as there are slots', async () => {
  const begun: string[] = []
  let running = 0
  let most = 0
  await runInSlots(['a', 'b', 'c', 'd', 'e'], 2, async (key) => {
    begun.push(key)
    most = Math.max(most, ++running)
    await sleep(key === 'a' ? 20 : 1)
    running--
  })
  expect([begun.join(''), most, running]).toEqual(['abcde', 2, 0])
  await runInSlots([], 2, () => expect.unreachable())
})

test('rejects with the first rejection', async () => {
  await expect(runInSlots(['a', 'b'], 1, (key) => Promise.reject(new Error(key)))).rejects.toThrow('a')
})
