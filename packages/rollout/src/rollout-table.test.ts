import { expect, test } from 'vitest'
import { type CurrentAttempt, type RolloutEntry, RolloutTable } from './rollout-table.ts'
import { rolloutRequest } from './testing/rollout-fixtures.ts'

const settle = { resolve() {}, reject() {} }

const attemptSince = (startedAt: number): CurrentAttempt => ({
  number: 0,
  worker: 'worker',
  agent: null,
  startedAt,
  stop: new AbortController(),
  lost: new AbortController(),
  result: null,
})

function tableOf(...keys: readonly string[]) {
  const table = new RolloutTable()
  const entries = keys.map((key) => table.add(rolloutRequest(key), settle))
  return { table, entries: entries as [RolloutEntry, RolloutEntry] }
}

test('a key that is under way is refused, and is free again after its rollout', () => {
  const { table, entries } = tableOf('a')
  expect(() => table.add(rolloutRequest('a'), settle)).toThrow(expect.objectContaining({ code: 'ROLLOUT_CONFLICT' }))
  table.remove(entries[0])
  expect(table.add(rolloutRequest('a'), settle)).not.toBe(entries[0])
})

test('a rollout leaves once, ends its watch, and does not take a later one of its key with it', () => {
  const { table, entries } = tableOf('a')
  let ends = 0
  entries[0].unwatch = () => ends++
  expect([table.remove(entries[0]), table.remove(entries[0]), ends]).toEqual([true, false, 1])
  const later = table.add(rolloutRequest('a'), settle)
  expect([table.remove(entries[0]), table.find('a')]).toEqual([false, later])
})

test('the oldest is the rollout whose attempt has run longest, and one without an attempt is none', () => {
  const { table, entries } = tableOf('waits', 'late', 'early')
  expect(table.oldest()).toBeNull()
  const [, late, early] = entries as readonly RolloutEntry[]
  late!.attempt = attemptSince(2)
  expect(table.oldest()?.key).toBe('late')
  early!.attempt = attemptSince(1)
  expect(table.oldest()).toEqual({ key: 'early', attempt: early!.attempt })
})

test('it is empty when the last rollout has left, and at once where there is none', async () => {
  const { table, entries } = tableOf('a', 'b')
  let isEmpty = false
  const emptied = table.untilEmpty().then(() => {
    isEmpty = true
  })
  table.remove(entries[0])
  await Promise.resolve()
  expect(isEmpty).toBe(false)
  table.remove(entries[1])
  await emptied
  await table.untilEmpty()
})

test('a rollout is queued until its first attempt begins, and in the order of its submission', () => {
  const { table, entries } = tableOf('a', 'b')
  const [first, second] = entries
  expect([table.queued, table.isQueued('a'), table.isQueued('never submitted')]).toEqual([2, true, false])
  Object.assign(first, { submittedAt: Date.now() - 60_000 })
  expect(table.oldestQueuedMs()).toBeGreaterThanOrEqual(60_000)
  expect([table.start(first), table.start(first)]).toEqual([true, false])
  expect([table.queued, table.isQueued('a'), table.isQueued('b')]).toEqual([1, false, true])
  expect(table.oldestQueuedMs()).toBeLessThan(60_000)
  table.remove(first)
  expect([table.queued, table.remove(second), table.queued, table.oldestQueuedMs()]).toEqual([1, true, 0, 0])
})
