import { TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { type WorkerAttempt, WorkerAttempts } from './worker-attempts.ts'
import { failedOutcome } from './worker-results.ts'

const first = { key: 'a', attempt: 0 }
const second = { key: 'a', attempt: 1 }
const outcome = failedOutcome(new TrainError('AGENT_FAILED', 'The agent failed.'))
const end = (entry: WorkerAttempt) => {
  entry.result = { type: 'result', key: entry.key, attempt: entry.attempt, outcome }
  return entry.result
}
const messageOf = ({ controller: { signal } }: WorkerAttempt) => (signal.aborted ? signal.reason.message : null)

test('an attempt is held from its begin until its result is confirmed, and begins once', () => {
  const attempts = new WorkerAttempts()
  const entry = attempts.begin(first)!
  expect([attempts.begin(first), attempts.begin(second) === null, attempts.names()]).toEqual([null, false, [first, second]])
  attempts.confirm(first)
  expect([attempts.has(entry), attempts.results()]).toEqual([true, []])
  const result = end(entry)
  expect([attempts.begin(first), attempts.results()]).toEqual([null, [result]])
  attempts.confirm(first)
  expect([attempts.has(entry), attempts.names(), attempts.results()]).toEqual([false, [second], []])
})

test('a cancelled attempt stays held; one that has its result is not cancelled', () => {
  const attempts = new WorkerAttempts()
  const [running, ended] = [attempts.begin(first)!, attempts.begin(second)!]
  end(ended)
  for (const name of [first, second, { key: 'unknown', attempt: 0 }]) attempts.cancel(name, 'Enough.')
  expect([messageOf(running), messageOf(ended), attempts.size]).toEqual(['Enough.', null, 2])
})

test('a dropped attempt is stopped and not held; a later one of its name is another', () => {
  const attempts = new WorkerAttempts()
  const before = attempts.begin(first)!
  attempts.drop(first, 'It was given to another worker.')
  const later = attempts.begin(first)!
  expect([messageOf(before), attempts.has(before), attempts.has(later)]).toEqual(['It was given to another worker.', false, true])
})

test('all are dropped with a reason that names their rollout, and so are results', () => {
  const attempts = new WorkerAttempts()
  const [running, ended] = [attempts.begin(first)!, attempts.begin(second)!]
  end(ended)
  attempts.dropAll('its worker has ended')
  expect([messageOf(running), messageOf(ended), attempts.size]).toEqual(['Rollout "a": its worker has ended.', null, 0])
})
