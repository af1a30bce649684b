import { describe, expect, test } from 'vitest'
import type { FleetLimits } from '../fleet/fleet-limits.ts'
import { createReplica } from '../fleet/replica.ts'
import { Publications } from './publications.ts'

const limits = { connectTimeoutMs: 10_000, keepAliveMs: 4_000, maxInFlight: 1 } as FleetLimits
/** A server that was never asked, and so holds no connection. */
const stale = () => {
  const replica = createReplica({ index: 0, url: 'http://127.0.0.1:9', headers: {}, limits, weightVersion: 0, onServerClosed() {} })
  replica.stale = true
  return replica
}

describe('what is missing at a server', () => {
  test('is the last publication of each policy, until it has them', () => {
    const publications = new Publications()
    const replica = stale()
    expect(publications.missing(replica)).toEqual([])
    const [base, adapter, later] = [
      { version: 1, directory: '/a' },
      { version: 2, directory: '/b', policy: 'tuned' },
      { version: 3, directory: '/c' },
    ]
    for (const publication of [base, adapter, later]) publications.add(publication)
    expect(publications.missing(replica)).toEqual([later, adapter])
    replica.stale = false
    expect(publications.missing(replica)).toEqual([])
  })

  test('is not brought again where it failed, but with the next publication', () => {
    const publications = new Publications()
    const replica = stale()
    publications.add({ version: 1, directory: '/a' })
    publications.miss(replica)
    expect(publications.missing(replica)).toEqual([])
    const next = { version: 2, directory: '/b' }
    publications.add(next)
    expect(publications.missing(replica)).toEqual([next])
  })
})

describe('the next publication', () => {
  const conflict = expect.objectContaining({ code: 'POLICY_VERSION_CONFLICT', details: { published: 4 } })
  test.each([
    ['has a later version', { version: 5, directory: '/a' }, false],
    ['may not have the version before', { version: 4, directory: '/a' }, true],
    ['may name the same version again, without weights', { version: 4 }, false],
    ['may not name an earlier one', { version: 3 }, true],
    ['may be the first of an adapter, whatever the base weights are', { version: 1, directory: '/a', policy: 'first' }, false],
    ['may not be an earlier one of an adapter', { version: 4, directory: '/a', policy: 'tuned' }, true],
  ])('%s', (_name, publication, refused) => {
    const publications = new Publications()
    publications.add({ version: 4, directory: '/t', policy: 'tuned' })
    const assert = () => publications.assertNext(publication, 4)
    if (refused) expect(assert).toThrow(conflict)
    else expect(assert).not.toThrow()
  })
})
