import { type Episode, TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { type RolloutEnd, type ServiceRow, ServiceRows, toRolloutEnd } from './service-rows.ts'

const done: RolloutEnd = { status: 'done', error: null, isLost: false }

function add(rows: ServiceRows, key: string, bytes = 1): ServiceRow {
  const row = { key, hash: key, bytes, controller: new AbortController(), accepted: null, ended: Promise.resolve(null), end: null }
  rows.add(row)
  return row
}

test('what is open counts with its bytes, and what has ended by how', () => {
  const rows = new ServiceRows(10)
  const [first, second] = [add(rows, 'a', 10), add(rows, 'b', 5)]
  expect([rows.open, rows.openBytes, rows.allOpen()]).toEqual([2, 15, [first, second]])
  rows.settle(first, done)
  rows.settle(second, { ...done, status: 'failed' })
  expect([rows.open, rows.openBytes, rows.allOpen()]).toEqual([0, 0, []])
  expect([rows.ends(), first.ended, rows.find('a') === first]).toEqual([{ done: 1, failed: 1, cancelled: 0 }, null, true])
})

test('it forgets what ended longest ago, but nothing that was submitted again', () => {
  const rows = new ServiceRows(1)
  for (const key of ['a', 'b']) rows.settle(add(rows, key), done)
  expect([rows.find('a'), rows.find('b')?.end]).toEqual([undefined, done])
  const again = add(rows, 'b')
  rows.settle(add(rows, 'c'), done)
  expect([rows.find('b') === again, rows.find('c')?.end]).toEqual([true, done])
})

const completed = { stopReason: 'completed' } as Episode
const failed = (code: 'AGENT_FAILED' | 'TOOL_SERVER_DIED') =>
  ({ stopReason: 'failed', error: new TrainError(code, 'It failed.').toRecord() }) as Episode

test.each<[string, Episode | TrainError, Pick<RolloutEnd, 'status' | 'isLost'>]>([
  ['an episode is done', completed, { status: 'done', isLost: false }],
  ['an episode that the agent failed is done', failed('AGENT_FAILED'), { status: 'done', isLost: false }],
  ['an episode that the infrastructure failed is done and lost', failed('TOOL_SERVER_DIED'), { status: 'done', isLost: true }],
  ['a cancellation is no failure', new TrainError('ROLLOUT_CANCELLED', 'Enough.'), { status: 'cancelled', isLost: false }],
  ['another error is a failure', new TrainError('STORE_FAILED', 'No space.'), { status: 'failed', isLost: false }],
])('%s', (_name, result, end) => {
  expect(toRolloutEnd(result)).toEqual({ ...end, error: result instanceof TrainError ? result : null })
})
