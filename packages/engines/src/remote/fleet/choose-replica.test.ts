import { describe, expect, test } from 'vitest'
import { type Choice, chooseReplica, type ReplicaLoad } from './choose-replica.ts'
import { healthyAtStart, nextHealth, type Observation } from './replica-health.ts'
import { type Failure, mayRetry } from './retry.ts'
import { createSessionTable } from './session-table.ts'

const limits = { maxInFlight: 10, repinExcess: 4, repinRatio: 1.5 }
const at = (inFlight: number, load: Partial<ReplicaLoad> = {}): ReplicaLoad => ({
  usable: true,
  inFlight,
  waiting: 0,
  sessions: 0,
  ...load,
})
const out = at(0, { usable: false })

describe('the replica of a call', () => {
  test.each<readonly [string, readonly ReplicaLoad[], number | undefined, Choice]>([
    ['the one with fewest calls at first use', [at(3), at(1), at(2)], undefined, { kind: 'take', index: 1, moved: false }],
    [
      'of equal ones that with fewest rollouts',
      [at(1, { sessions: 4 }), at(1, { sessions: 2 })],
      undefined,
      { kind: 'take', index: 1, moved: false },
    ],
    ['the pinned one, however full others are empty', [at(9), at(0)], 0, { kind: 'take', index: 0, moved: false }],
    ['another when the pinned one went away', [out, at(5)], 0, { kind: 'take', index: 1, moved: true }],
    ['none when all are full', [at(10), at(10)], undefined, { kind: 'wait-anywhere' }],
    ['none when all are out', [out, out], 1, { kind: 'wait-anywhere' }],
    ['waits for a full pinned one while others are nearly as full', [at(10), at(7)], 0, { kind: 'wait', index: 0 }],
    ['leaves a full pinned one past both thresholds', [at(10, { waiting: 2 }), at(7)], 0, { kind: 'take', index: 1, moved: true }],
    ['does not overtake calls that wait', [at(2, { waiting: 1 })], undefined, { kind: 'wait-anywhere' }],
    ['queues behind calls that wait for the pinned one', [at(2, { waiting: 1 }), at(2)], 0, { kind: 'wait', index: 0 }],
  ])('%s', (_title, replicas, pinned, choice) => {
    expect(chooseReplica(replicas, pinned, limits)).toEqual(choice)
  })

  test('stays where one threshold alone is past', () => {
    const home = at(10, { waiting: 6 })
    expect(chooseReplica([home, at(9)], 0, { ...limits, repinRatio: 2 })).toEqual({ kind: 'wait', index: 0 })
    expect(chooseReplica([home, at(9)], 0, { ...limits, repinExcess: 8 })).toEqual({ kind: 'wait', index: 0 })
  })
})

describe('the health of a replica', () => {
  const limit = { unhealthyAfter: 3, healthyAfter: 2 }
  const after = (...observations: Observation[]) =>
    observations.reduce((health, each) => nextHealth(health, each, limit), healthyAtStart).healthy

  test.each<readonly [readonly Observation[], boolean]>([
    [[], true],
    [['probe-failed', 'probe-failed'], true],
    [['probe-failed', 'probe-failed', 'probe-failed'], false],
    [['probe-failed', 'probe-failed', 'probe-ok', 'probe-failed', 'probe-failed'], true],
    [['connect-failed'], false],
    [['connect-failed', 'probe-ok'], false],
    [['connect-failed', 'probe-ok', 'probe-ok'], true],
    [['connect-failed', 'probe-ok', 'probe-failed', 'probe-ok'], false],
    [['connect-failed', 'probe-ok', 'connect-failed', 'probe-ok'], false],
  ])('after %j is %s', (observations, healthy) => {
    expect(after(...observations)).toBe(healthy)
  })
})

describe('a retry', () => {
  test.each<readonly [Failure, boolean]>([
    [{ stage: 'connect' }, true],
    [{ stage: 'sent', reused: true, afterMs: 3 }, true],
    [{ stage: 'sent', reused: true, afterMs: 2000 }, false],
    [{ stage: 'sent', reused: false, afterMs: 3 }, false],
    [{ stage: 'status', status: 502 }, true],
    [{ stage: 'status', status: 503 }, true],
    [{ stage: 'status', status: 504 }, true],
    [{ stage: 'status', status: 500 }, false],
    [{ stage: 'status', status: 429 }, false],
    [{ stage: 'status', status: 400 }, false],
    [{ stage: 'answered' }, false],
  ])('after %j: %s', (failure, allowed) => {
    expect(mayRetry(failure, [], 1000)).toBe(allowed)
    expect(mayRetry(failure, [{ stage: 'connect' }], 1000)).toBe(false)
    expect(mayRetry(failure, [{ stage: 'sent', reused: true, afterMs: 1 }], 1000)).toBe(failure.stage === 'connect')
  })
})

describe('the table of rollouts', () => {
  test('forgets the rollout that called longest ago, and counts what is pinned', () => {
    const table = createSessionTable(2)
    table.pin('a', 0)
    table.pin('b', 1)
    table.pin('a', 0)
    table.pin('c', 1)
    expect([table.get('a'), table.get('b'), table.get('c')]).toEqual([0, undefined, 1])
    expect([table.count(0), table.count(1), table.size()]).toEqual([1, 1, 2])
    table.pin('a', 1)
    expect([table.count(0), table.count(1)]).toEqual([0, 2])
    table.forget('a')
    table.forget('a')
    expect([table.count(1), table.size()]).toEqual([1, 1])
  })
})
