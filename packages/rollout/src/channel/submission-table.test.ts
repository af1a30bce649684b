import type { ChannelHello, ChannelSubmit } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { ChannelConnection } from './channel-connection.ts'
import type { ClientSession } from './client-sessions.ts'
import { SubmissionTable } from './submission-table.ts'

const connection = (): ChannelConnection => ({ send() {}, reject() {}, unreadable() {}, close() {}, beat() {} })
const session = (): ClientSession => ({ hello: {} as ChannelHello, connection: connection() })
/** The table reads no more of a submission. */
const submit = (key: string) => ({ key }) as ChannelSubmit

test('a submission is removed once, and a later one of its key is another', () => {
  const table = new SubmissionTable()
  const first = table.add(session(), submit('a'))
  expect([table.remove(first), table.remove(first), table.has(first), table.size]).toEqual([true, false, false, 0])
  const second = table.add(session(), submit('a'))
  expect([table.remove(first), table.has(second), table.find('a') === second]).toEqual([false, true, true])
})

test('a lost connection abandons what was submitted over it last', () => {
  const table = new SubmissionTable()
  const [worker, other] = [session(), session()]
  const [kept, moved] = [table.add(worker, submit('a')), table.add(worker, submit('b'))]
  table.add(other, submit('c'))
  moved.session = other
  moved.connection = other.connection
  expect(table.disconnect(worker.connection!)).toEqual([kept])
  expect(table.all().map((each) => each.connection)).toEqual([null, other.connection, other.connection])
  expect([table.of(worker).map(({ key }) => key), table.of(other).map(({ key }) => key)]).toEqual([['a'], ['b', 'c']])
})

test('a key is being cancelled until its last cancellation has ended', async () => {
  const table = new SubmissionTable()
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  expect(table.ending('a')).toBeNull()
  const submission = table.add(session(), submit('a'))
  expect(table.served('a')).toBe(submission)
  table.end('a', first.promise)
  const ending = table.ending('a')
  table.end('a', second.promise)
  first.resolve()
  await ending
  expect([table.ending('a') === null, table.find('a'), table.served('a')]).toEqual([false, submission, undefined])
  let isEnded = false
  const ended = table.untilEnded().then(() => {
    isEnded = true
  })
  await Promise.resolve()
  expect(isEnded).toBe(false)
  second.resolve()
  await ended
  expect([table.ending('a'), table.served('a')]).toEqual([null, submission])
})
