import { type ChannelHello, type ChannelSubmit, type GenerateRequest, type ServiceMessage, TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { EngineConnection } from './channel-connection.ts'
import { ClientCalls } from './client-calls.ts'
import type { ClientCall, Submission } from './submission-table.ts'

const reason = new TrainError('ROLLOUT_CLOSED', 'The rollout is over.')
const result = {
  tokenIds: Int32Array.of(1),
  logprobs: Float32Array.of(-1),
  finishReason: { unified: 'stop' as const, raw: 'stop' },
  weightVersions: [],
  cachedTokens: 0,
}

const requestOf = (turn: number): GenerateRequest => ({
  promptTokenIds: Int32Array.of(1, 2),
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 4, stop: [], seed: 0 },
  random: { seed: 0, task: 'a', sample: 0, turn },
  affinity: 'a.0',
  origin: { rollout: 'a', attempt: 0, agent: 'agent', trajectory: 'agent' },
})

/** A connection; `sent` has each message of it, as words. */
function line(): EngineConnection & { readonly sent: string[] } {
  const sent: string[] = []
  const textOf = (message: ServiceMessage) => ('id' in message ? `${message.type} ${message.id}` : message.type)
  return { sent, send: (message) => void sent.push(textOf(message)) }
}

function start() {
  const calls = new ClientCalls()
  const connection = line()
  calls.join(connection)
  const submission = calls.submissions.add({ hello: {} as ChannelHello, connection: null }, { key: 'a' } as ChannelSubmit)
  return { calls, connection, submission }
}

/** Begins a call whose end is noted as words in `ends`. */
function begin(calls: ClientCalls, submission: Submission, ends: string[], turn = 0): ClientCall {
  const begun = calls.begin(submission, requestOf(turn))
  begun.result.then(
    () => ends.push(`${turn} resolved`),
    (error: Error) => ends.push(`${turn} ${error.message}`),
  )
  return begun.call
}

test('a call waits for a connection, and is found by its number on that one until it has ended', async () => {
  const { calls, connection, submission } = start()
  const ends: string[] = []
  const call = begin(calls, submission, ends)
  expect([call.id, calls.size, connection.sent]).toEqual([null, 1, []])
  calls.connect(submission, connection)
  expect([call.id, connection.sent, calls.find(connection, 1) === call]).toEqual([1, ['generate 1'], true])
  calls.resolve(call, result)
  await Promise.resolve()
  expect([calls.find(connection, 1), calls.size, ends]).toEqual([undefined, 0, ['0 resolved']])
})

test('another connection takes over all calls, and the one before is told to stop', () => {
  const { calls, connection, submission } = start()
  const other = line()
  calls.join(other)
  calls.connect(submission, connection)
  const two = [begin(calls, submission, []), begin(calls, submission, [], 1)]
  calls.connect(submission, connection)
  expect(connection.sent).toEqual(['generate 1', 'generate 2'])
  calls.connect(submission, other)
  expect([connection.sent.slice(2), other.sent]).toEqual([
    ['abort 1', 'abort 2'],
    ['generate 1', 'generate 2'],
  ])
  expect([calls.find(connection, 1), [1, 2].map((id) => calls.find(other, id))]).toEqual([undefined, two])
})

test('a lost connection leaves its submissions without one, and their calls are told nobody', async () => {
  const { calls, connection, submission } = start()
  calls.connect(submission, connection)
  const ends: string[] = []
  const call = begin(calls, submission, ends)
  expect([calls.disconnect(connection), submission.connection, calls.connections]).toEqual([[submission], null, 0])
  calls.abort(call, reason)
  calls.abort(call, new Error('Again.'))
  await Promise.resolve()
  expect([connection.sent, ends, calls.size]).toEqual([['generate 1'], ['0 The rollout is over.'], 0])
})

test('a submission is released once, with all its calls', async () => {
  const { calls, connection, submission } = start()
  calls.connect(submission, connection)
  const ends: string[] = []
  for (const turn of [0, 1]) begin(calls, submission, ends, turn)
  expect([calls.release(submission, reason), calls.release(submission, reason)]).toEqual([true, false])
  await Promise.resolve()
  expect(ends).toEqual(['0 The rollout is over.', '1 The rollout is over.'])
  expect([connection.sent.slice(2), calls.submissions.size, calls.size]).toEqual([['abort 1', 'abort 2'], 0, 0])
})

test('the end of all calls leaves their submissions open', async () => {
  const { calls, submission } = start()
  const ends: string[] = []
  begin(calls, submission, ends)
  calls.abortAll(reason)
  await Promise.resolve()
  expect([ends, calls.submissions.has(submission)]).toEqual([['0 The rollout is over.'], true])
})
