import type { ChannelHello } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { ChannelConnection } from './channel-connection.ts'
import { ClientSessions } from './client-sessions.ts'

/** The sessions read no more of a hello. */
const helloOf = (run: string, incarnation: string, worker = 'w0') => ({ run, incarnation, worker }) as ChannelHello

const connection = (): ChannelConnection => ({ send() {}, reject() {}, unreadable() {}, close() {}, beat() {} })

test('a worker that joins again keeps its session and hands over its connection', () => {
  const sessions = new ClientSessions()
  const [first, second] = [connection(), connection()]
  const joined = sessions.join(helloOf('run', 'a'), first)
  expect(joined).toMatchObject({ isBack: false, replaced: null })
  const again = sessions.join(helloOf('run', 'a'), second)
  expect(again).toEqual({ session: joined.session, isBack: true, replaced: first })
  expect([again.session === joined.session, joined.session.connection === second, sessions.connected()]).toEqual([true, true, 1])
})

test('a lost connection leaves the session, which nothing else takes', () => {
  const sessions = new ClientSessions()
  const { session } = sessions.join(helloOf('run', 'a'), connection())
  session.connection = null
  expect(sessions.connected()).toBe(0)
  expect(sessions.join(helloOf('run', 'a', 'w1'), connection())).toMatchObject({ isBack: false })
  expect(sessions.join(helloOf('run', 'a'), connection())).toMatchObject({ isBack: true, replaced: null })
  sessions.remove(session)
  expect([sessions.connected(), sessions.join(helloOf('run', 'a'), connection()).isBack]).toEqual([1, false])
})

test('the model is bound by other runs and by the same start, not by other starts of the run', () => {
  const sessions = new ClientSessions()
  expect(sessions.isBound(helloOf('run', 'a'))).toBe(false)
  sessions.join(helloOf('run', 'a'), connection())
  const bound = [helloOf('run', 'a', 'w1'), helloOf('run', 'b'), helloOf('other', 'a')].map((hello) => sessions.isBound(hello))
  expect(bound).toEqual([true, false, true])
})

test('a start removes the other starts of its run alone', () => {
  const sessions = new ClientSessions()
  const [old, second] = ['w0', 'w1'].map((worker) => sessions.join(helloOf('run', 'a', worker), connection()).session)
  sessions.join(helloOf('run', 'b'), connection())
  sessions.join(helloOf('other', 'a'), connection())
  expect(sessions.removeOtherStarts(helloOf('run', 'b'))).toEqual([old, second])
  expect([sessions.connected(), sessions.removeOtherStarts(helloOf('run', 'b'))]).toEqual([2, []])
})
