import { type RolloutRequest, type TrainingSample, taskHash, toTrainingSamples } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import { createBigramPolicy } from '../testing/bigram-policy.ts'
import { createDirectRunner } from '../testing/direct-runner.ts'
import { createMemoryStore } from '../testing/memory-store.ts'
import { SelectedSamples } from './selected-samples.ts'
import { TokenAccounts } from './token-accounts.ts'

const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 1, stop: [], seed: 0 }
const task = { version: 1 as const, id: 'task', hash: taskHash({ input: '', data: {} }), input: '', data: { token: 1 } }

/** A group of one-token rollouts with these rewards, each of the policy of its place, and the accounts of what was sampled. */
async function group(rewards: readonly (number | null)[], policies: readonly string[] = []) {
  const { engine } = createBigramPolicy(9)
  const reward = ({ sample }: RolloutRequest) => rewards[sample]!
  const runner = createDirectRunner({ engine, store: createMemoryStore('unused'), reward })
  // Policies share the engine, so each has the sampled tokens of all.
  const tokens = new TokenAccounts(new Map((policies.length > 0 ? policies : ['model']).map((name) => [name, { engine }])), null)
  const requests = rewards.map((_, sample) => ({
    version: 1 as const,
    key: `group/${sample}`,
    task: { ...task, dataSource: 'count', extraInfo: {} },
    group: 'group',
    sample,
    split: 'train',
    step: 1,
    policy: policies[sample] ?? 'model',
    sampling,
    limits: {},
  }))
  const episodes = await runner.runAll(requests, new AbortController().signal)
  const samples = episodes.flatMap((episode) => toTrainingSamples(episode).samples)
  return { episodes, samples, selected: new SelectedSamples(tokens), ledgers: () => tokens.toLedgers(true) }
}

describe('samples that a trainer was handed', () => {
  test('are unselected until an update trains them, and count once', async () => {
    const { episodes, samples, selected, ledgers } = await group([1, 0])
    expect(selected.hand(episodes, false)).toEqual([])
    expect(ledgers().ledger).toMatchObject({ untrained: { 'unselected-by-trainer': 2 }, withVariance: { sampled: 2, trained: 0 } })
    expect(selected.train(samples.slice(1), 1, false)).toMatchObject({ rows: [{ rollout: 'group/1', reason: null }], trainedTokens: 1 })
    expect(selected.train(samples, 2, false)).toMatchObject({ rows: [{ rollout: 'group/0' }], trainedTokens: 1 })
    expect(selected.train(samples, 2, false)).toEqual({ rows: [], trainedTokens: 0 })
    expect(ledgers().ledger).toMatchObject({ sampled: 2, trained: 2, unexplained: 0, withVariance: { sampled: 2, trained: 2 } })
  })

  test('of equal rewards are of no group with variance', async () => {
    const { episodes, samples, selected, ledgers } = await group([1, 1])
    selected.hand(episodes, false)
    selected.train(samples, 2, false)
    expect(ledgers().ledger).toMatchObject({ trained: 2, withVariance: { sampled: 0, trained: 0 } })
  })

  test('are trained with as many tokens as the learner counted', async () => {
    const { episodes, samples, selected, ledgers } = await group([1, 0])
    selected.hand(episodes, false)
    expect(selected.train(samples, 1, false).trainedTokens).toBe(1)
    expect(ledgers().ledger).toMatchObject({ trained: 1, unexplained: 1 })
  })

  test('are in the accounts already where their step is repeated', async () => {
    const { episodes, samples, selected, ledgers } = await group([1, 0, null])
    expect(selected.hand(episodes, true)).toMatchObject([{ rollout: 'group/2', reason: 'failed-episode', tokens: 1 }])
    expect(selected.train(samples.slice(1), 1, true)).toMatchObject({ rows: [{ rollout: 'group/1' }], trainedTokens: 1 })
    const { trained, untrained, withVariance } = ledgers().ledger
    expect({ trained, untrained, withVariance }).toEqual({ trained: 0, untrained: {}, withVariance: { sampled: 0, trained: 0 } })
  })

  test('that failed are rows with their reason, and never selected', async () => {
    const { episodes, selected, ledgers } = await group([1, null])
    expect(selected.hand(episodes, false)).toMatchObject([{ rollout: 'group/1', reason: 'failed-episode', tokens: 1 }])
    expect(ledgers().ledger).toMatchObject({ untrained: { 'unselected-by-trainer': 1, 'failed-episode': 1 }, unexplained: 0 })
  })

  test('of others do not count', async () => {
    const { episodes, samples, selected, ledgers } = await group([1, 0])
    const [own] = samples as [TrainingSample, TrainingSample]
    const demonstration = { ...own, provenance: { ...own.provenance, rollout: 'demonstration' } }
    selected.hand(episodes, false)
    expect(selected.train([demonstration, own], 2, false)).toMatchObject({ rows: [{ rollout: 'group/0' }], trainedTokens: 1 })
    expect(ledgers().ledger).toMatchObject({ trained: 1, untrained: { 'unselected-by-trainer': 1 }, unexplained: 0 })
  })

  test('without a token to train stay unselected, and those with more show in the ledger', async () => {
    const { episodes, samples, selected, ledgers } = await group([1, 0])
    const [first, second] = samples as [TrainingSample, TrainingSample]
    selected.hand(episodes, false)
    const masked = { ...first, lossMask: new Uint8Array(first.lossMask.length) }
    expect(selected.train([masked], 0, false)).toEqual({ rows: [], trainedTokens: 0 })
    const longer = { ...second, lossMask: new Uint8Array(second.lossMask.length + 1).fill(1) }
    selected.train([longer], longer.lossMask.length, false)
    expect(ledgers().ledger).toMatchObject({ untrained: { 'unselected-by-trainer': 1 }, unexplained: 1 - longer.lossMask.length })
  })

  test('of several policies count for their own, of an update that says the tokens of all', async () => {
    const { episodes, samples, selected, ledgers } = await group([1, 0, 0], ['lead', 'reader', 'writer'])
    selected.hand(episodes, false)
    const { rows, trainedTokens } = selected.train([samples[1]!, samples[0]!], 2, false)
    expect([rows.map(({ policy }) => policy), trainedTokens]).toEqual([['reader', 'lead'], 2])
    const counts = Object.entries(ledgers().policies).map(([name, ledger]) => [
      name,
      ledger.trained,
      ledger.untrained['unselected-by-trainer'],
    ])
    expect(counts).toEqual([
      ['lead', 1, 0],
      ['reader', 1, 0],
      ['writer', 0, 1],
    ])
  })
})
