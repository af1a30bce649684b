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

function leave(table: RolloutTable, entry: RolloutEntry): void {
  table.end(entry)
  table.remove(entry)
}

function tableOf(...keys: readonly string[]) {
  const table = new RolloutTable()
  const entries = keys.map((key) => table.add(rolloutRequest(key), settle))
  return { table, entries: entries as [RolloutEntry, RolloutEntry] }
}

test('a key that is under way is refused, and is free again after its rollout', () => {
  const { table, entries } = tableOf('a')
  expect(() => table.add(rolloutRequest('a'), settle)).toThrow(expect.objectContaining({ code: 'ROLLOUT_CONFLICT' }))
  leave(table, entries[0])
  expect(table.add(rolloutRequest('a'), settle)).not.toBe(entries[0])
})

test('a rollout ends once, ends its watch, and a later one of its key is another', () => {
  const { table, entries } = tableOf('a')
  let ends = 0
  entries[0].unwatch = () => ends++
  expect([table.end(entries[0]), table.end(entries[0]), ends]).toEqual([true, false, 1])
  table.remove(entries[0])
  const later = table.add(rolloutRequest('a'), settle)
  expect([table.end(entries[0]), table.find('a')]).toEqual([false, later])
})

test('a rollout that ends counts as before until it is removed, and is given to nobody', () => {
  const { table, entries } = tableOf('queued', 'runs')
  const [queued, runs] = entries
  table.start(runs)
  runs.attempt = attemptSince(1)
  table.end(queued)
  table.end(runs)
  expect([table.queued, table.isQueued('queued'), table.isQueued('runs')]).toEqual([1, true, false])
  expect([table.find('queued'), table.all(), table.oldest()]).toEqual([undefined, [], null])
  expect(() => table.add(rolloutRequest('queued'), settle)).toThrow(expect.objectContaining({ code: 'ROLLOUT_CONFLICT' }))
  table.remove(queued)
  expect([table.queued, table.isQueued('queued')]).toEqual([0, false])
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
  leave(table, entries[0])
  await Promise.resolve()
  expect(isEmpty).toBe(false)
  leave(table, entries[1])
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
  leave(table, first)
  expect(table.queued).toBe(1)
  leave(table, second)
  expect([table.queued, table.oldestQueuedMs()]).toEqual([0, 0])
})
