import type { Episode } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { TokenAccounts } from './token-accounts.ts'

const sampler = (sampled: { tokens: number }) => ({ engine: { sampledTokens: () => sampled.tokens } })

/** An episode that each policy sampled so many tokens of. */
const episode = (tokens: Record<string, number>) =>
  ({
    trajectories: Object.entries(tokens).map(([policy, length]) => ({ policy, turns: [{ completionTokenIds: new Int32Array(length) }] })),
  }) as unknown as Episode

test('each policy has its tokens, those of an earlier process included, and all add up', () => {
  const [lead, reader] = [{ tokens: 100 }, { tokens: 50 }]
  const samplers = new Map([
    ['lead', sampler(lead)],
    ['reader', sampler(reader)],
  ])
  const first = new TokenAccounts(samplers, null)
  lead.tokens += 7
  reader.tokens += 5
  first.addTrained('lead', 4)
  first.addUntrained('lead', 3, 'superseded-attempt')
  first.addEpisode(episode({ reader: 5 }), 'evaluation')
  first.addVarianceGroup({ sampled: 4, trained: 4 })
  const saved = JSON.parse(JSON.stringify(first.toLedgers(true)))
  expect(saved).toMatchObject({
    ledger: { sampled: 12, trained: 4, unexplained: 0, untrained: { 'superseded-attempt': 3, evaluation: 5 } },
    policies: {
      lead: { sampled: 7, trained: 4, untrained: { 'superseded-attempt': 3 }, unexplained: 0 },
      reader: { sampled: 5, trained: 0, untrained: { evaluation: 5 }, unexplained: 0 },
    },
  })
  const second = new TokenAccounts(samplers, saved)
  // An earlier process sampled an episode that only this one uses.
  const kept = episode({ lead: 2, reader: 1 })
  second.addRecorded(kept)
  second.addEpisode(kept, 'in-flight')
  reader.tokens += 1
  expect(second.toLedgers(true)).toMatchObject({
    ledger: { sampled: 16, unexplained: 1, withVariance: { sampled: 4, trained: 4 } },
    policies: {
      lead: { sampled: 9, untrained: { 'superseded-attempt': 3, 'in-flight': 2 }, unexplained: 0 },
      reader: { sampled: 7, untrained: { evaluation: 5, 'in-flight': 1 }, unexplained: 1 },
    },
  })
  // While rollouts run, only what is in an account counts.
  expect(second.toLedgers(false)).toMatchObject({ ledger: { sampled: 15, unexplained: 0 }, policies: { reader: { sampled: 6 } } })
})

test('one policy alone has all tokens, under whatever name they were sampled', () => {
  const sampled = { tokens: 0 }
  const accounts = new TokenAccounts(new Map([['model', sampler(sampled)]]), null)
  sampled.tokens = 3
  accounts.addEpisode(episode({ 'name-of-the-client': 3 }), 'evaluation')
  expect(accounts.toLedgers(true).ledger).toMatchObject({ sampled: 3, untrained: { evaluation: 3 }, unexplained: 0 })
})

test('tokens of a model that is not among several policies are in no account', () => {
  const accounts = new TokenAccounts(new Map(['lead', 'reader'].map((name) => [name, sampler({ tokens: 0 })])), null)
  accounts.addEpisode(episode({ critic: 3 }), 'evaluation')
  accounts.addTrained('critic', 1)
  expect(accounts.toLedgers(true).ledger).toMatchObject({ sampled: 0, trained: 0, untrained: {}, unexplained: 0 })
})
