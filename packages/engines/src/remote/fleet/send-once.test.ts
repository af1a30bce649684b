import { TrainError } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import type { ExchangeEnd } from './exchange.ts'
import { setVersion } from './replica.ts'
import { judge, snapshotOf, type Verdict } from './send-once.ts'

const url = 'http://127.0.0.1:8000'
const replica = () => ({ url, restarts: 0, history: new Map([['', [4]]]) })
const answered: ExchangeEnd = { kind: 'answered' }
const failed = (stage: 'connect' | 'sent' | 'answered', cause = new Error('cut')): ExchangeEnd => ({
  kind: 'failed',
  stage,
  reused: true,
  afterMs: 7,
  cause,
})

describe('an answer', () => {
  test('names every version that may have sampled it, and none before', () => {
    const server = replica()
    setVersion(server, 5)
    const before = snapshotOf(server, undefined)
    setVersion(server, 6)
    expect(judge(server, undefined, before, answered)).toEqual({ outcome: { replica: url, weightVersions: [5, 6] } })
  })

  test('of an adapter that was published during the call names the base weights first', () => {
    const server = replica()
    const before = snapshotOf(server, 'tuned')
    setVersion(server, 9, 'tuned')
    expect(judge(server, 'tuned', before, answered)).toEqual({ outcome: { replica: url, weightVersions: [4, 9] } })
  })

  test('is lost if the server restarted with other weights', () => {
    const server = replica()
    const before = snapshotOf(server, undefined)
    server.restarts++
    const verdict = judge(server, undefined, before, answered)
    expect(verdict).toMatchObject({ failure: { stage: 'answered' }, error: { code: 'POLICY_STALE_WEIGHTS' }, sign: null })
  })
})

describe('a failure', () => {
  const own = new TrainError('CONFIG_INVALID', 'The request cannot be sent; mend it.')
  test.each<readonly [string, ExchangeEnd, Partial<Extract<Verdict, { error: TrainError }>>]>([
    ['to connect shows a server that cannot be reached', failed('connect'), { sign: 'unreachable' }],
    ['before the answer asks for a probe', failed('sent'), { failure: { stage: 'sent', reused: true, afterMs: 7 }, sign: 'uncertain' }],
    ['within the answer asks for a probe', failed('answered'), { sign: 'uncertain' }],
    [
      'of ours says nothing of the server and is not repeated',
      failed('sent', own),
      { failure: { stage: 'answered' }, error: own, sign: null },
    ],
    [
      'by a status says nothing of the server',
      { kind: 'refused', status: 503, body: 'busy', retryAfter: null },
      { failure: { stage: 'status', status: 503 }, sign: null },
    ],
  ])('%s', (_name, end, expected) => {
    const server = replica()
    expect(judge(server, undefined, snapshotOf(server, undefined), end)).toMatchObject(expected)
  })
})
