import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addCount, type TokenCounts, totalCount } from '../ledger/token-counts.ts'
import type { Episode } from '../protocol/episode.ts'
import type { Turn } from '../protocol/turn.ts'
import { arbitraryEpisode, makeEpisode, makeTrajectory, type TurnShape } from './arbitrary-episode.test-support.ts'
import { type TrainingSampleOptions, toTrainingSamples } from './to-training-samples.ts'

const turn = (parent: number, override: Partial<TurnShape> = {}): TurnShape => ({
  parent,
  delivered: 'delivered',
  added: 0,
  completion: 2,
  attempt: 0,
  version: 0,
  ...override,
})

const arbitraryOptions: fc.Arbitrary<TrainingSampleOptions> = fc.record(
  {
    maxSampleTokens: fc.integer({ min: 2, max: 30 }),
    mixedWeights: fc.constantFrom('train', 'exclude'),
    incompleteEpisodes: fc.constantFrom('train', 'exclude'),
  },
  { requiredKeys: [] },
)

/** Ids with mask 1 over all rows, with their logprobs. */
function trainedTokens({ samples }: ReturnType<typeof toTrainingSamples>): [id: number, logprob: number][] {
  return samples.flatMap(({ tokenIds, lossMask, rolloutLogprobs }) =>
    [...tokenIds].flatMap((id, i): [number, number][] => (lossMask[i] === 1 ? [[id, rolloutLogprobs[i]!]] : [])),
  )
}

const sampledIds = ({ trajectories }: Episode, current: boolean) =>
  trajectories.flatMap(({ turns, trainable }) =>
    turns.flatMap(({ completionTokenIds, attempt }) => (!current || (trainable && attempt === 1) ? [...completionTokenIds] : [])),
  )

describe('toTrainingSamples', () => {
  it('trains only what the policy sampled in this attempt, with the logprob of the engine', () => {
    fc.assert(
      fc.property(arbitraryEpisode, arbitraryOptions, (episode, options) => {
        const sampled = new Set(sampledIds(episode, true))
        for (const [id, logprob] of trainedTokens(toTrainingSamples(episode, options))) {
          expect(sampled.has(id)).toBe(true)
          expect(logprob).toBe(Math.fround(-id))
        }
      }),
    )
  })

  it('has every sampled token in exactly one row with mask 1, or in the account', () => {
    fc.assert(
      fc.property(arbitraryEpisode, arbitraryOptions, (episode, options) => {
        const assembly = toTrainingSamples(episode, options)
        const trained = trainedTokens(assembly).map(([id]) => id)
        expect(new Set(trained).size).toBe(trained.length)
        expect(assembly.sampled).toBe(sampledIds(episode, false).length)
        expect(trained.length + totalCount(assembly.untrained)).toBe(assembly.sampled)
        const counted: TokenCounts = {}
        for (const { agent, turns, tokens, reason } of assembly.untrainedTurns) {
          addCount(counted, reason, tokens)
          const ofAgent = episode.trajectories.filter((trajectory) => trajectory.agent === agent).flatMap((trajectory) => trajectory.turns)
          const left = ofAgent.filter(({ index }) => turns.includes(index))
          expect(left.flatMap(({ completionTokenIds }) => [...completionTokenIds]).filter((id) => trained.includes(id))).toEqual([])
        }
        expect(counted).toEqual(assembly.untrained)
      }),
    )
  })

  it('never trains a turn that nobody received, unless a later turn that somebody received extends it', () => {
    fc.assert(
      fc.property(arbitraryEpisode, (episode) => {
        const trained = new Set(trainedTokens(toTrainingSamples(episode)).map(([id]) => id))
        for (const { turns } of episode.trajectories) {
          const isExtended = (index: number): boolean =>
            turns.some((child) => child.parent === index && (child.delivered === 'delivered' || isExtended(child.index)))
          for (const each of turns) {
            if (each.delivered === 'delivered' || isExtended(each.index)) continue
            expect([...each.completionTokenIds].some((id) => trained.has(id))).toBe(false)
          }
        }
      }),
    )
  })

  it('leaves out what another model answered, text or tokens, and trains the rest', () => {
    const episode = makeEpisode([makeTrajectory([turn(-1), turn(-1), turn(0)])])
    const [trajectory] = episode.trajectories
    trajectory!.turns[1] = { ...trajectory!.turns[1]!, model: 'judge', capture: { tokens: 'none', logprobs: 'raw' } }
    const { samples, untrained } = toTrainingSamples(episode)
    expect(samples.map(({ provenance }) => provenance.turns)).toEqual([[0, 2]])
    expect(untrained).toEqual({ 'frozen-policy': 2 })
  })

  it('takes a turn that an update fell into for one of mixed weights', () => {
    const episode = makeEpisode([makeTrajectory([turn(-1)])])
    const [trajectory] = episode.trajectories
    trajectory!.turns[0] = { ...trajectory!.turns[0]!, mixedVersions: { lowest: 0, highest: 1 } }
    expect(toTrainingSamples(episode).samples).toHaveLength(1)
    expect(toTrainingSamples(episode, { mixedWeights: 'exclude' }).untrained).toEqual({ 'mixed-weights': 2 })
  })

  it('gives rows whose arrays have one length and whose spans stand in order', () => {
    fc.assert(
      fc.property(arbitraryEpisode, (episode) => {
        for (const { tokenIds, lossMask, rolloutLogprobs, weightVersions } of toTrainingSamples(episode).samples) {
          expect([lossMask.length, rolloutLogprobs.length]).toEqual([tokenIds.length, tokenIds.length])
          const starts = weightVersions.map(({ fromToken }) => fromToken)
          expect(starts).toEqual([...starts].sort((a, b) => a - b))
        }
      }),
    )
  })

  it('joins a conversation to one row, in which tool text has mask 0', () => {
    const { samples } = toTrainingSamples(makeEpisode([makeTrajectory([turn(-1), turn(0, { added: 2 }), turn(1)])]))
    expect(samples).toHaveLength(1)
    expect([...samples[0]!.lossMask]).toEqual([0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 1])
    expect(samples[0]!.weightVersions.map(({ fromToken }) => fromToken)).toEqual([1, 6, 9])
    expect(samples[0]!.provenance.turns).toEqual([0, 1, 2])
  })

  it('trains a shared turn in the first of its branches', () => {
    const { samples } = toTrainingSamples(makeEpisode([makeTrajectory([turn(-1), turn(0), turn(0)])]))
    expect(samples.map(({ lossMask }) => [...lossMask])).toEqual([
      [0, 1, 1, 0, 1, 1],
      [0, 0, 0, 0, 1, 1],
    ])
  })

  it('orders the rows of conversations that an agent has at once by their tokens, however their turns arrived', () => {
    const { turns, ...trajectory } = makeTrajectory([turn(-1), turn(-1), turn(0), turn(1)])
    const arrived = (order: readonly number[]) =>
      order.map((from, index) => ({
        ...turns[from]!,
        index,
        parent: turns[from]!.parent === null ? null : order.indexOf(turns[from]!.parent),
      }))
    const tokens = (order: readonly number[]) =>
      toTrainingSamples(makeEpisode([{ ...trajectory, turns: arrived(order) }])).samples.map(({ tokenIds }) => [...tokenIds])
    expect(tokens([0, 1, 2, 3])).toHaveLength(2)
    for (const order of [
      [1, 0, 2, 3],
      [1, 3, 0, 2],
      [0, 1, 3, 2],
    ])
      expect(tokens(order)).toEqual(tokens([0, 1, 2, 3]))
  })

  it('trains a shared turn in the next branch when the first is too long', () => {
    const { samples, untrained } = toTrainingSamples(makeEpisode([makeTrajectory([turn(-1), turn(0, { added: 9 }), turn(0)])]), {
      maxSampleTokens: 6,
    })
    expect(samples.map(({ provenance }) => provenance.turns)).toEqual([[0, 2]])
    expect(samples[0]!.lossMask.reduce((sum, bit) => sum + bit)).toBe(4)
    expect(untrained).toEqual({ 'too-long': 2 })
  })

  it.each([
    [{ stopReason: 'failed' }, {}, 'failed-episode'],
    [{ stopReason: 'no-model-call' }, {}, 'failed-episode'],
    [{ stopReason: 'cancelled' }, {}, 'cancelled-episode'],
    [{ stopReason: 'time-limit' }, {}, 'truncated-episode'],
    [{ stopReason: 'turn-limit' }, { incompleteEpisodes: 'exclude' }, 'truncated-episode'],
    [{ reward: null }, {}, 'not-scored'],
    [{}, { policy: 'another' }, 'frozen-policy'],
    [{ attempt: 1 }, {}, 'superseded-attempt'],
  ] as const)('accounts for an episode with %j under its reason', (episode, options, reason) => {
    const { samples, untrained } = toTrainingSamples(makeEpisode([makeTrajectory([turn(-1)])], episode), options)
    expect(samples).toEqual([])
    expect(untrained).toEqual({ [reason]: 2 })
  })

  it('keeps attempts apart whose turns have the same numbers', () => {
    const [old, current] = [makeTrajectory([turn(-1)]), makeTrajectory([turn(-1, { attempt: 1 })], {}, 2_000_000)]
    const both = makeEpisode([{ ...current, turns: [...old.turns, ...current.turns] }], { attempt: 1 })
    const assembly = toTrainingSamples(both)
    expect(trainedTokens(assembly).map(([id]) => id)).toEqual([2_000_000, 2_000_001])
    expect(assembly.untrained).toEqual({ 'superseded-attempt': 2 })
  })

  it('leaves out a branch of mixed weights when told', () => {
    const episode = makeEpisode([makeTrajectory([turn(-1), turn(0, { version: 1 })])])
    expect(toTrainingSamples(episode).samples).toHaveLength(1)
    expect(toTrainingSamples(episode, { mixedWeights: 'exclude' }).untrained).toEqual({ 'mixed-weights': 4 })
  })

  it('refuses truncated sampling, another kind of logprob, and text without tokens', () => {
    const trajectory = makeTrajectory([turn(-1)])
    const withTurn = (override: object) => makeEpisode([{ ...trajectory, turns: [{ ...trajectory.turns[0]!, ...override }] }])
    const truncated = withTurn({ sampling: { ...trajectory.turns[0]!.sampling, topP: 0.9 } })
    expect(() => toTrainingSamples(truncated)).toThrow(/top-p 0.9/)
    expect(toTrainingSamples(truncated, { truncatedSampling: 'accept' }).samples).toHaveLength(1)
    expect(() => toTrainingSamples(withTurn({ capture: { tokens: 'token-in', logprobs: 'raw' } }))).toThrow(/"raw" logprobs/)
    expect(() => toTrainingSamples(withTurn({ capture: { tokens: 'none', logprobs: 'temperature' } }))).toThrow(/text only/)
  })

  it('refuses a record whose turns do not continue each other', () => {
    const trajectory = makeTrajectory([turn(-1), turn(0)])
    trajectory.turns[1]!.promptTokenIds[1] = 7
    expect(() => toTrainingSamples(makeEpisode([trajectory]))).toThrow(/record is corrupt/)
  })
})

describe("calls beside an agent's work", () => {
  const kinds = (...callKinds: Turn['callKind'][]) => {
    const trajectory = makeTrajectory(callKinds.map((_, index) => turn(index === 2 ? 1 : -1)))
    return makeEpisode([
      {
        ...trajectory,
        turns: trajectory.turns.map((each, index) => ({ ...each, ...(callKinds[index] && { callKind: callKinds[index] }) })),
      },
    ])
  }
  const trainedTurns = (episode: Episode) => toTrainingSamples(episode).samples.map(({ provenance }) => provenance.turns)

  it('are those without tools of an agent that has tools: they are in the ledger, whatever their place', () => {
    const episode = kinds('without-tools', 'with-tools', 'with-tools', 'without-tools')
    const { samples, untrained, untrainedTurns, sampled } = toTrainingSamples(episode)
    expect(samples.map(({ provenance }) => provenance.turns)).toEqual([[1, 2]])
    expect(untrained).toEqual({ 'side-call': 4 })
    expect(untrainedTurns).toEqual([
      { agent: 'agent', trajectory: 'agent', policy: 'local', turns: [0, 3], tokens: 4, reason: 'side-call' },
    ])
    expect(sampled).toBe(8)
  })

  it('are none where an agent has no tools, or where nobody says what a call was', () => {
    expect(trainedTurns(kinds('without-tools', 'without-tools'))).toEqual([[0], [1]])
    expect(trainedTurns(kinds(undefined, 'with-tools'))).toEqual([[0], [1]])
  })

  it('are those that the run left out, with tools too', () => {
    expect(trainedTurns(kinds(undefined, 'left-out'))).toEqual([[0]])
  })

  it('are not trained where a trained call goes on from one, whose own tokens are', () => {
    const { samples, untrained } = toTrainingSamples(kinds('with-tools', 'without-tools', 'with-tools'))
    expect(samples.map(({ provenance }) => provenance.turns)).toEqual([[0], [2]])
    expect(samples[1]!.lossMask.reduce((sum, mask) => sum + mask, 0)).toBe(2)
    expect(untrained).toEqual({ 'side-call': 2 })
  })
})
