import { type Episode, mergeCounts, type TokenCounts, type Trajectory, type Turn } from '@aworld-train/core'
import { describe, expect, it } from 'vitest'
import { parseLocalConfig } from '../config/parse-local-config.ts'
import { rewardInput } from '../testing/reward-input.ts'
import { assembleBatch } from './assemble-batch.ts'
import type { BatchRow } from './step-samples.ts'

/** Each call of an agent is an invocation with one turn of two tokens. */
interface RolloutOf {
  readonly calls: Readonly<Record<string, number>>
  readonly reward?: number | null
  readonly agents?: Readonly<Record<string, number>>
  readonly turn?: Partial<Turn>
}

function invocation(agent: string, id: string, changes: Partial<Turn> | null): Trajectory {
  const turn: Turn = {
    version: 2,
    index: 0,
    agent,
    trajectory: id,
    attempt: 0,
    parent: null,
    branchReasons: ['root'],
    promptTokenIds: Int32Array.of(1),
    completionTokenIds: Int32Array.of(2, 3),
    rolloutLogprobs: Float32Array.of(-1, -1),
    weightVersions: [{ fromToken: 0, version: 0 }],
    finishReason: { unified: 'stop', raw: 'stop' },
    delivered: 'delivered',
    messagesDelta: [],
    message: { role: 'assistant', content: 'x' },
    toolCalls: [],
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 2, stop: [], seed: 0 },
    usage: { promptTokens: 1, completionTokens: 2, cachedTokens: 0 },
    timing: { startedAt: 0, endedAt: 0 },
    capture: { tokens: 'token-in', logprobs: 'temperature' },
    ...changes,
  }
  const turns = changes === null ? [] : [turn]
  return { version: 2, id, agent, policy: 'policy', trainable: true, startedBy: [], timing: null, turns }
}

const group = (...rollouts: readonly RolloutOf[]): Episode[] =>
  rollouts.map(({ calls, reward = 0, agents, turn = {} }, sample) => ({
    ...rewardInput().episode,
    rollout: `rollout-${sample}`,
    sample,
    reward,
    ...(agents && { agentRewards: agents }),
    trajectories: Object.entries(calls).flatMap(([agent, count]) =>
      count === 0
        ? [invocation(agent, agent, null)]
        : Array.from({ length: count }, (_, call) => invocation(agent, call === 0 ? agent : `${agent}:${call}`, turn)),
    ),
  }))

const settings = (training: object = {}) =>
  parseLocalConfig({ training: { advantage: 'group-relative-unscaled', ...training } }).config.training
/** Tokens of the rows that are not trained, by their reasons. */
function untrainedOf(rows: readonly BatchRow[]): TokenCounts {
  const counts: TokenCounts = {}
  for (const { reason, tokens } of rows) if (reason !== null) mergeCounts(counts, { [reason]: tokens })
  return counts
}
const advantages = (episodes: readonly Episode[], training?: object) =>
  assembleBatch([episodes], settings(training)).groups.map((samples) => samples.map(({ agent, advantage }) => [agent, advantage]))

describe('assembleBatch', () => {
  it('gives all rows of a role in a rollout its one advantage, however often it was called', () => {
    expect(advantages(group({ calls: { lead: 1, reader: 3 }, reward: 1 }, { calls: { lead: 1, reader: 1 }, reward: 0 }))).toEqual([
      [
        ['lead', 0.5],
        ['reader', 0.5],
        ['reader', 0.5],
        ['reader', 0.5],
        ['lead', -0.5],
        ['reader', -0.5],
      ],
    ])
  })

  it.each([
    [
      0,
      [
        ['lead', 0.5],
        ['reader', 0.5],
        ['lead', -0.5],
        ['reader', -0.5],
      ],
    ],
    [
      0.5,
      [
        ['lead', 0.5],
        ['reader', 0],
        ['lead', -0.5],
        ['reader', 0],
      ],
    ],
    [
      1,
      [
        ['lead', 0.5],
        ['reader', -0.5],
        ['lead', -0.5],
        ['reader', 0.5],
      ],
    ],
  ])('mixes the own reward of an agent by ownReward: %d', (ownReward, expected) => {
    const episodes = group(
      { calls: { lead: 1, reader: 1 }, reward: 1, agents: { reader: 0 } },
      { calls: { lead: 1, reader: 1 }, reward: 0, agents: { reader: 1 } },
    )
    expect(advantages(episodes, { ownReward, dropZeroVariance: false })).toEqual([expected])
  })

  it('leaves a role without variance out by itself, and accounts for its tokens alone', () => {
    const episodes = group(
      { calls: { lead: 1, reader: 2 }, reward: 1, agents: { lead: 1, reader: 1 } },
      { calls: { lead: 1, reader: 1 }, reward: 1, agents: { lead: 0, reader: 1 } },
    )
    const { groups, rows, withVariance, sampledTokens, metrics } = assembleBatch([episodes], settings({ ownReward: 1 }))
    expect(groups.map((samples) => samples.map(({ agent }) => agent))).toEqual([['lead', 'lead']])
    expect({ untrained: untrainedOf(rows), withVariance, sampledTokens }).toEqual({
      untrained: { 'zero-variance-group': 6 },
      withVariance: { sampled: 4, trained: 4 },
      sampledTokens: 10,
    })
    expect(rows.map(({ agent, reason, tokens, advantage }) => [agent, reason, tokens, advantage])).toEqual([
      ['lead', null, 2, 0.5],
      ['lead', null, 2, -0.5],
      ['reader', 'zero-variance-group', 2, null],
      ['reader', 'zero-variance-group', 2, null],
      ['reader', 'zero-variance-group', 2, null],
    ])
    expect(metrics).toMatchObject({ groups: 1, groupsWithVariance: 1, zeroVarianceGroups: 0, groupsOfOne: 0 })
  })

  it('leaves a role that one rollout called out as a group of one', () => {
    const episodes = group({ calls: { lead: 1, reader: 1 }, reward: 1 }, { calls: { lead: 1, reader: 0 }, reward: 0 })
    const { rows, metrics } = assembleBatch([episodes], settings())
    expect(untrainedOf(rows)).toEqual({ 'group-of-one': 2 })
    expect(metrics).toMatchObject({ groupsWithVariance: 1, groupsOfOne: 0 })
  })

  it.each([
    [group({ calls: { lead: 1, reader: 1 }, reward: 1 }, { calls: { lead: 1, reader: 1 }, reward: 1 }), 0, 1, 0],
    [group({ calls: { lead: 1, reader: 0 }, reward: 1 }, { calls: { lead: 0, reader: 1 }, reward: 0 }), 0, 0, 1],
    [group({ calls: { lead: 1, reader: 1 }, reward: 1 }, { calls: { lead: 1, reader: 0 }, reward: 1 }), 0, 1, 0],
    [group({ calls: { lead: 1, reader: 0 }, reward: 1 }, { calls: { lead: 1, reader: 1 }, reward: 0 }), 1, 0, 0],
  ])('counts a group once, as one that teaches if any role does: %#', (episodes, groupsWithVariance, zeroVarianceGroups, groupsOfOne) => {
    expect(assembleBatch([episodes], settings()).metrics).toMatchObject({ groupsWithVariance, zeroVarianceGroups, groupsOfOne })
  })

  it('counts rewards, tokens, turns, malformed calls, invocations and groups by role', () => {
    const teaching = group(
      { calls: { lead: 1, reader: 3 }, reward: 1, agents: { reader: 0 } },
      { calls: { lead: 1, reader: 1 }, reward: 0, agents: { reader: 0 }, turn: { unparsed: ['call-not-readable'] } },
      { calls: { lead: 1, reader: 0 }, reward: 1 },
      { calls: { lead: 1, reader: 1 }, reward: null },
    )
    const { roleMetrics } = assembleBatch([teaching], settings({ ownReward: 1 }))
    expect(roleMetrics).toEqual({
      'role/lead/reward': 2 / 3,
      'role/lead/sampledTokens': 8,
      'role/lead/turns': 4,
      'role/lead/malformedTurns': 1,
      'role/lead/invocations': 4,
      'role/lead/groupsWithVariance': 1,
      'role/reader/reward': 0,
      'role/reader/sampledTokens': 10,
      'role/reader/turns': 5,
      'role/reader/malformedTurns': 1,
      'role/reader/invocations': 5,
      'role/reader/groupsWithVariance': 0,
    })
  })

  it('has metrics of roles only where more than one is trained, also one that no rollout called', () => {
    const one = group({ calls: { lead: 1 }, reward: 1 }, { calls: { lead: 1 }, reward: 0 })
    expect(assembleBatch([one], settings()).roleMetrics).toEqual({})
    const frozen = one.map((episode) => ({
      ...episode,
      trajectories: [...episode.trajectories, { ...invocation('critic', 'critic', {}), trainable: false }],
    }))
    expect(assembleBatch([frozen], settings()).roleMetrics).toEqual({})
    const idle = group({ calls: { lead: 1, reader: 0 }, reward: 1 })
    const { roleMetrics } = assembleBatch([idle], settings())
    expect(roleMetrics).toMatchObject({ 'role/reader/turns': 0, 'role/reader/invocations': 0 })
    expect(roleMetrics).not.toHaveProperty('role/reader/reward')
  })

  it('an episode that a reward of groups could compare with nothing has the reason of a group of one', () => {
    const [first, second] = group({ calls: { lead: 1 }, reward: null }, { calls: { lead: 1 }, reward: null }) as [Episode, Episode]
    const failed: Episode = { ...second, stopReason: 'failed' }
    const batch = assembleBatch([[{ ...first, groupScored: true }, failed]], settings())
    expect(batch.rows.map(({ rollout, reason }) => [rollout, reason])).toEqual([
      ['rollout-0', 'group-of-one'],
      ['rollout-1', 'failed-episode'],
    ])
    expect(batch.metrics.groupsOfOne).toBe(1)
    const both = assembleBatch([[first, second].map((each) => ({ ...each, groupScored: true as const }))], settings())
    expect(both.rows.map(({ reason }) => reason)).toEqual(['not-scored', 'not-scored'])
  })
})
