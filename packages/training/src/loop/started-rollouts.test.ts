import type { Episode, RolloutRequest } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import { StartedRollouts } from './started-rollouts.ts'
import { TokenAccounts } from './token-accounts.ts'

const toEpisode = (rollout: string, tokens: number, code?: string) =>
  ({
    rollout,
    trajectories: [{ policy: 'model', turns: [{ completionTokenIds: new Int32Array(tokens) }] }],
    ...(code && { stopReason: 'failed', error: { code, retryable: true } }),
  }) as unknown as Episode
const toRequests = (...keys: string[]) => keys.map((key) => ({ key }) as RolloutRequest)

/** Started rollouts over the episodes of a store, and their accounts where this process sampled nothing. */
function begin(...stored: Episode[]) {
  const store = new Map(stored.map((episode) => [episode.rollout, episode]))
  const tokens = new TokenAccounts(new Map([['model', { engine: { sampledTokens: () => 0 } }]]), null)
  const started = new StartedRollouts({ episode: (key) => store.get(key) ?? null }, tokens)
  return { store, started, ledger: () => tokens.toLedgers(true).ledger }
}

describe('rollouts that were started', () => {
  test('count what an earlier process sampled once, and not what this one did', () => {
    const [earlier, own] = [toEpisode('earlier', 3), toEpisode('own', 5)]
    const { started, ledger } = begin(earlier)
    expect(started.allCounted).toBe(true)
    started.add(toRequests('earlier', 'own'))
    expect([started.isOfEarlierProcess('earlier'), started.isOfEarlierProcess('own'), started.allCounted]).toEqual([true, false, false])
    started.count([earlier, own])
    started.count([earlier])
    expect([ledger().sampled, started.allCounted]).toEqual([3, true])
    expect(started.isOfEarlierProcess('earlier')).toBe(true)
  })

  test('count nothing of an episode that nobody started', () => {
    const { started, ledger } = begin(toEpisode('earlier', 3))
    started.count([toEpisode('earlier', 3)])
    expect(ledger().sampled).toBe(0)
  })

  test('are run by this process where the infrastructure failed the earlier one', () => {
    const { started, ledger } = begin(toEpisode('lost', 3, 'TOOL_SERVER_DIED'))
    started.add(toRequests('lost'))
    started.count([toEpisode('lost', 4)])
    expect([started.isOfEarlierProcess('lost'), ledger().sampled]).toEqual([false, 0])
  })

  test('are in flight at a stop if they ended and were not counted, and are then forgotten', () => {
    const { store, started, ledger } = begin(toEpisode('earlier', 3), toEpisode('counted', 9))
    started.add(toRequests('earlier', 'counted', 'ended', 'cut'))
    started.count([toEpisode('counted', 9)])
    store.set('ended', toEpisode('ended', 5))
    started.countInFlight()
    expect(ledger()).toMatchObject({ sampled: 12, untrained: { 'in-flight': 8 } })
    expect(started.allCounted).toBe(true)
    started.countInFlight()
    expect(ledger().untrained).toEqual({ 'in-flight': 8 })
  })
})
