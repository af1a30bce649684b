import { type AttemptAssignment, type CoordinatorMessage, TrainError, type WorkerFile } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { rolloutRequest } from '../testing/rollout-fixtures.ts'
import { failedOutcome } from './worker-results.ts'
import { WorkerSession } from './worker-session.ts'

const outcome = failedOutcome(new TrainError('AGENT_FAILED', 'The agent failed.'))
const name = { key: 'a', attempt: 0 }

function assignment(files?: string[]): AttemptAssignment {
  const { extraInfo: _, ...task } = rolloutRequest('a').task
  return { ...name, sample: 0, task: { ...task, ...(files && { files }) }, endpoints: {}, limits: { timeoutMs: 1 } }
}

/** A connected worker; `sent` has what it is told, as words. */
function connectedSession(announce: () => Promise<WorkerFile[]> = async () => []) {
  const sent: string[] = []
  const dismissed: WorkerSession[] = []
  const hello = { name: 'worker', incarnation: 'first', agentHash: 'hash' }
  const session = new WorkerSession({ hello, announce, onDismiss: (each) => dismissed.push(each) })
  const textOf = (message: CoordinatorMessage) => {
    if ('rollout' in message) return `${message.type} ${message.rollout?.key}`
    return 'reason' in message ? `${message.type}: ${message.reason}` : message.type
  }
  const connect = () => {
    session.connection = { send: (message) => void sent.push(textOf(message)), close() {}, heardAt: () => 0 }
  }
  connect()
  return { session, sent, dismissed, connect }
}

test('an outcome goes to who awaits it, once', async () => {
  const { session, sent } = connectedSession()
  const executed = session.execute(assignment(), new AbortController())
  expect([session.awaited, session.end({ ...name, attempt: 1, outcome })]).toEqual([1, false])
  expect([session.end({ ...name, outcome }), session.end({ ...name, outcome })]).toEqual([true, false])
  expect(await executed).toBe(outcome)
  expect([session.awaited, sent]).toEqual([0, ['assign']])
})

test('a fenced attempt has no outcome', () => {
  const { session, sent } = connectedSession()
  void session.execute(assignment(), new AbortController())
  session.fence(name)
  expect([session.awaited, session.end({ ...name, outcome }), sent]).toEqual([0, false, ['assign', 'fence']])
})

test('an attempt that is fenced while its files are read is not assigned', async () => {
  const read = Promise.withResolvers<WorkerFile[]>()
  const { session, sent } = connectedSession(() => read.promise)
  void session.execute(assignment(['a.txt']), new AbortController())
  expect(sent).toEqual([])
  session.fence(name)
  read.resolve([])
  await read.promise.then(() => {})
  expect(sent).toEqual(['fence'])
})

test('a cancellation follows its assignment, also where it came first', async () => {
  const read = Promise.withResolvers<WorkerFile[]>()
  const { session, sent } = connectedSession(() => read.promise)
  const control = new AbortController()
  void session.execute(assignment(['a.txt']), control)
  control.abort(new Error('The time is up'))
  expect(sent).toEqual([])
  read.resolve([])
  await read.promise.then(() => {})
  expect(sent).toEqual(['assign', 'cancel: The time is up'])
})

test('a worker that connects again is told which clocks stand, of attempts that it still has', () => {
  const { session, sent, connect } = connectedSession()
  void session.execute(assignment(), new AbortController())
  session.hold(name)
  session.connection = null
  session.resume(name)
  connect()
  session.resume()
  expect(sent).toEqual(['assign', 'hold a', 'resume', 'resume a'])
  session.end({ ...name, outcome })
  session.hold(name)
  session.hold()
  expect(sent.slice(4)).toEqual(['hold'])
})

test('a worker without a connection keeps its attempts and is told nothing', () => {
  const { session, sent, dismissed } = connectedSession()
  void session.execute(assignment(), new AbortController())
  session.connection = null
  session.hold()
  session.kept(name)
  expect([sent, session.awaited, dismissed]).toEqual([['assign'], 1, []])
  session.dismiss()
  expect(dismissed).toEqual([session])
})
