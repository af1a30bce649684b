import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { totalCount } from '../ledger/token-counts.ts'
import type { RowSelection } from '../protocol/channel.ts'
import type { Episode } from '../protocol/episode.ts'
import { arbitraryEpisode, makeEpisode, makeTrajectory, type TurnShape } from './arbitrary-episode.test-support.ts'
import { type TrainerRowAssembly, type TrainerRowOptions, toTrainerRows } from './to-trainer-rows.ts'

const limits = { maxPromptTokens: 100, maxResponseTokens: 100 }
const options = (overrides: Partial<TrainerRowOptions> = {}): TrainerRowOptions => ({
  rows: 'all',
  limits,
  evaluation: false,
  reward: 'service',
  ...overrides,
})
const turn = (overrides: Partial<TurnShape> = {}): TurnShape => ({
  parent: -1,
  delivered: 'delivered',
  added: 1,
  completion: 2,
  attempt: 0,
  version: 0,
  ...overrides,
})

/** Ends turn `index` of the first trajectory at `at`. */
function ending(episode: Episode, ...at: number[]): Episode {
  for (const [index, endedAt] of at.entries()) episode.trajectories[0]!.turns[index]!.timing = { startedAt: 0, endedAt }
  return episode
}

/** Ids with mask 1, in their order. */
const trained = ({ rows }: TrainerRowAssembly) =>
  rows.map(({ tokenIds, lossMask }) => Array.from(tokenIds).filter((_, index) => lossMask[index] === 1))
const turnsOf = ({ rows }: TrainerRowAssembly) => rows.map(({ turns }) => turns)

/** Two branches that share turn 0: 0 → 1 (longer) and 0 → 2. */
const forked = () => [turn(), turn({ parent: 0, completion: 4 }), turn({ parent: 0, completion: 1, version: 2 })]

describe('branches', () => {
  test('are all rows, the one that ended last behind the others, and a shared turn has mask 1 once', () => {
    const episode = ending(makeEpisode([makeTrajectory(forked())]), 1, 9, 5)
    const assembly = toTrainerRows(episode, options())
    expect(turnsOf(assembly)).toEqual([
      [0, 2],
      [0, 1],
    ])
    expect(trained(assembly)).toEqual([[1_000_006], [1_000_000, 1_000_001, 1_000_002, 1_000_003, 1_000_004, 1_000_005]])
    expect(assembly).toMatchObject({ status: 'done', omitted: {}, sampled: 7, error: null })
    expect(assembly.rows.map(({ promptLength, minVersion, maxVersion }) => [promptLength, minVersion, maxVersion])).toEqual([
      [2, 2, 2],
      [2, 0, 0],
    ])
  })

  test.each<[RowSelection, number[], number[][], number]>([
    ['last', [1, 5, 9], [[1_000_000, 1_000_001, 1_000_006]], 4],
    ['last', [1, 9, 5], [[1_000_000, 1_000_001, 1_000_002, 1_000_003, 1_000_004, 1_000_005]], 1],
    ['longest', [1, 5, 9], [[1_000_000, 1_000_001, 1_000_002, 1_000_003, 1_000_004, 1_000_005]], 1],
  ])('of which one is asked for (%s, ended at %j) leave the rest as unselected', (rows, at, ids, left) => {
    const assembly = toTrainerRows(ending(makeEpisode([makeTrajectory(forked())]), ...at), options({ rows }))
    expect(trained(assembly)).toEqual(ids)
    expect(assembly.omitted).toEqual({ 'unselected-by-trainer': left })
  })

  test('of several agents are rows of each; one of them is the last of the episode', () => {
    const one = makeTrajectory([turn()], { agent: 'plan' })
    const other = makeTrajectory([turn()], { agent: 'act' }, 2_000_000)
    one.turns[0]!.timing = { startedAt: 0, endedAt: 9 }
    const frozen = makeTrajectory([turn()], { agent: 'judge', trainable: false }, 3_000_000)
    const episode = makeEpisode([one, other, frozen])
    const all = toTrainerRows(episode, options())
    expect(all.rows.map(({ agent }) => agent)).toEqual(['plan', 'act'])
    expect(all.omitted).toEqual({ 'frozen-policy': 2 })
    const last = toTrainerRows(episode, options({ rows: 'last' }))
    expect(last.rows.map(({ agent }) => agent)).toEqual(['act'])
    expect(last.omitted).toEqual({ 'frozen-policy': 2, 'unselected-by-trainer': 2 })
  })

  test('of invocations that nobody declared to be the last do not depend on who ended later', () => {
    const readerOf = (id: string, endedAt: number) => {
      const trajectory = makeTrajectory(
        [turn()],
        { agent: 'reader', id, startedBy: [{ trajectory: 'lead', turn: 0, toolCall: id }] },
        1_000_000 + endedAt,
      )
      trajectory.turns[0]!.timing = { startedAt: 0, endedAt }
      return trajectory
    }
    const lead = makeTrajectory([turn()], { agent: 'lead', trainable: false })
    for (const [first, second] of [
      [5, 9],
      [9, 5],
    ] as const) {
      const episode = makeEpisode([lead, readerOf('reader:lead.0.0', first), readerOf('reader:lead.0.1', second)])
      expect(toTrainerRows(episode, options({ rows: 'last' })).rows).toMatchObject([{ trajectory: 'reader:lead.0.1' }])
    }
  })

  test('of an evaluation are those of the answer where the agent of the rows made no call, and of a limit met side by side', () => {
    const act = makeTrajectory([turn()], { agent: 'act' })
    const evaluated = toTrainerRows(makeEpisode([act]), options({ rows: { role: 'plan' }, evaluation: true }))
    expect(evaluated).toMatchObject({ status: 'done', rows: [{ agent: 'act', reward: 1 }] })
    const limited = makeEpisode([act], { stopReason: 'token-limit', limitedSideBySide: true })
    expect(toTrainerRows(limited, options({ evaluation: true }))).toMatchObject({ status: 'done', rows: [{ agent: 'act', reward: 1 }] })
    expect(toTrainerRows(limited, options())).toMatchObject({ rows: [], omitted: { 'truncated-episode': 2 } })
  })

  test('of one agent are that of its last branch; what others sampled is left out', () => {
    const plan = makeTrajectory([turn(), turn()], { agent: 'plan' })
    plan.turns[0]!.timing = { startedAt: 0, endedAt: 5 }
    plan.turns[1]!.timing = { startedAt: 0, endedAt: 4 }
    const act = makeTrajectory([turn()], { agent: 'act' }, 2_000_000)
    act.turns[0]!.timing = { startedAt: 0, endedAt: 9 }
    const episode = makeEpisode([plan, act])
    const planned = toTrainerRows(episode, options({ rows: { role: 'plan' } }))
    expect(planned.rows).toMatchObject([{ agent: 'plan', turns: [0] }])
    expect(planned).toMatchObject({ status: 'done', omitted: { 'unselected-by-trainer': 4 } })
    const again = makeTrajectory([turn()], { agent: 'plan', id: 'plan:act.0.0' }, 3_000_000)
    const twice = toTrainerRows(makeEpisode([plan, again, act]), options({ rows: { role: 'plan' } }))
    expect(twice.rows).toMatchObject([{ agent: 'plan', trajectory: 'plan:act.0.0' }])
    const absent = toTrainerRows(makeEpisode([act]), options({ rows: { role: 'plan' } }))
    expect(absent).toMatchObject({
      status: 'failed',
      rows: [],
      omitted: { 'unselected-by-trainer': 2 },
      error: { code: 'ROLLOUT_WITHOUT_ROWS' },
    })
    expect(absent.error!.message).toContain('gives no row of agent "plan" (2 tokens unselected-by-trainer)')
  })

  test('without a sampled token are no rows', () => {
    const assembly = toTrainerRows(
      makeEpisode([makeTrajectory([turn(), turn({ completion: 0 }), turn({ parent: 0, completion: 0 })])]),
      options(),
    )
    expect(turnsOf(assembly)).toEqual([[0, 2]])
    expect(assembly.omitted).toEqual({})
  })

  test('sampled across an update say between which versions', () => {
    const trajectory = makeTrajectory([turn({ version: 3 }), turn({ parent: 0, version: 4 })])
    trajectory.turns[1]!.mixedVersions = { lowest: 4, highest: 6 }
    expect(toTrainerRows(makeEpisode([trajectory]), options()).rows).toMatchObject([{ minVersion: 3, maxVersion: 6 }])
  })
})

describe('lengths', () => {
  // Prompt of 2; responses of 2 + 2 + 4 = 8 and 2 + 2 + 1 = 5.
  test.each([
    [
      { maxPromptTokens: 2, maxResponseTokens: 8 },
      [
        [0, 1],
        [0, 2],
      ],
      {},
    ],
    [{ maxPromptTokens: 2, maxResponseTokens: 7 }, [[0, 2]], { 'too-long': 4 }],
    [{ maxPromptTokens: 2, maxResponseTokens: 5 }, [[0, 2]], { 'too-long': 4 }],
  ])('%j leave out what is longer, whole, and its shared turns train in the other row', (limits, rows, omitted) => {
    const assembly = toTrainerRows(ending(makeEpisode([makeTrajectory(forked())]), 1, 2, 3), options({ limits }))
    expect(turnsOf(assembly)).toEqual(rows)
    expect(assembly.omitted).toEqual(omitted)
    expect(assembly.status).toBe('done')
    expect(trained(assembly).flat()).toContain(1_000_000)
  })

  test.each([
    ['prompt', { maxPromptTokens: 1, maxResponseTokens: 100 }],
    ['response', { maxPromptTokens: 2, maxResponseTokens: 4 }],
  ])('that no row keeps to (%s) fail the rollout, and say what was left out', (_name, limits) => {
    const assembly = toTrainerRows(makeEpisode([makeTrajectory(forked())]), options({ limits }))
    expect(assembly).toMatchObject({ status: 'failed', rows: [], omitted: { 'too-long': 7 }, error: { code: 'ROLLOUT_WITHOUT_ROWS' } })
    expect(assembly.error!.message).toContain('7 tokens too-long')
  })

  test('do not matter in an evaluation', () => {
    const assembly = toTrainerRows(
      makeEpisode([makeTrajectory(forked())]),
      options({ limits: { maxPromptTokens: 1, maxResponseTokens: 1 }, evaluation: true }),
    )
    expect(assembly).toMatchObject({ status: 'done', omitted: {} })
    expect(assembly.rows.length).toBe(2)
  })
})

describe('an episode', () => {
  const error = { code: 'AGENT_FAILED', boundary: 'agent' as const, retryable: false, message: 'The agent threw.' }
  test.each<[string, Partial<Episode>, 'done' | 'failed', object, number | null]>([
    ['that completed', {}, 'done', {}, 1],
    ['that reached a limit and is worth 0', { stopReason: 'turn-limit', reward: 0 }, 'done', {}, 0],
    ['cut in its answer', { stopReason: 'truncated', reward: 0 }, 'done', {}, 0],
    ['that failed', { stopReason: 'failed', reward: null, error }, 'failed', { 'failed-episode': 2 }, null],
    ['out of time', { stopReason: 'time-limit', reward: null }, 'failed', { 'truncated-episode': 2 }, null],
    ['cancelled', { stopReason: 'cancelled', reward: null }, 'failed', { 'cancelled-episode': 2 }, null],
    ['without a score', { reward: null }, 'failed', { 'not-scored': 2 }, null],
  ])('%s is one outcome when it trains', (_name, overrides, status, omitted, reward) => {
    const assembly = toTrainerRows(makeEpisode([makeTrajectory([turn()])], overrides), options())
    expect(assembly).toMatchObject({ status, omitted })
    expect(assembly.rows.map((row) => row.reward)).toEqual(status === 'done' ? [reward] : [])
    const code = 'not-scored' in omitted ? 'ROLLOUT_UNSCORED' : 'ROLLOUT_WITHOUT_ROWS'
    if (status === 'failed') expect(assembly.error).toMatchObject(overrides.error ?? { code })
  })

  test('that failed shows its rows in an evaluation, and stays failed', () => {
    const assembly = toTrainerRows(
      makeEpisode([makeTrajectory([turn()])], { stopReason: 'failed', reward: null, error }),
      options({ evaluation: true }),
    )
    expect(assembly).toMatchObject({ status: 'failed', error, omitted: {}, rows: [{ reward: null }] })
  })

  test('that the trainer scores needs no reward here, and fails where it failed', () => {
    const native = options({ reward: 'native' })
    expect(toTrainerRows(makeEpisode([makeTrajectory([turn()])], { reward: null }), native)).toMatchObject({
      status: 'done',
      rows: [{ reward: null }],
    })
    const failed = makeEpisode([makeTrajectory([turn()])], { stopReason: 'failed', reward: null, error })
    expect(toTrainerRows(failed, native)).toMatchObject({ status: 'failed', rows: [] })
  })

  test('that names rewards of agents has them in their rows, by the share of ownReward', () => {
    const [lead, reader] = ['lead', 'reader'].map((agent, i) => makeTrajectory([turn()], { agent }, (i + 1) * 1_000_000))
    const episode = makeEpisode([lead!, reader!], { reward: 1, agentRewards: { reader: 0 } })
    const rewards = (overrides?: Partial<TrainerRowOptions>) =>
      Object.fromEntries(toTrainerRows(episode, options(overrides)).rows.map(({ agent, reward }) => [agent, reward]))
    expect(rewards()).toEqual({ lead: 1, reader: 1 })
    expect(rewards({ ownReward: 0.75 })).toEqual({ lead: 1, reader: 0.25 })
    expect(rewards({ ownReward: 0.75, evaluation: true })).toEqual({ lead: 1, reader: 1 })
  })

  test('without a call is failed', () => {
    const nothing = makeEpisode([makeTrajectory([])], { stopReason: 'no-model-call', reward: null })
    expect(toTrainerRows(nothing, options())).toMatchObject({ status: 'failed', rows: [], omitted: {}, sampled: 0 })
  })

  test('sampled in a way that cannot be trained is refused when it trains, with every token counted', () => {
    const trajectory = makeTrajectory([turn()])
    trajectory.turns[0]!.sampling.topP = 0.9
    const episode = makeEpisode([trajectory])
    expect(toTrainerRows(episode, options())).toMatchObject({
      status: 'failed',
      omitted: { 'failed-episode': 2 },
      error: { code: 'CONFIG_INVALID' },
    })
    expect(toTrainerRows(episode, options({ evaluation: true }))).toMatchObject({ status: 'done' })
  })
})

const arbitraryOptions = fc.record({
  rows: fc.constantFrom<RowSelection>('all', 'last', 'longest', { role: 'agent' }),
  limits: fc.record({ maxPromptTokens: fc.integer({ min: 1, max: 6 }), maxResponseTokens: fc.integer({ min: 1, max: 20 }) }),
  evaluation: fc.boolean(),
  reward: fc.constantFrom<TrainerRowOptions['reward']>('service', 'native'),
})

test('every sampled token is in exactly one row with mask 1, or in one reason', () => {
  fc.assert(
    fc.property(arbitraryEpisode, arbitraryOptions, (episode, options) => {
      const assembly = toTrainerRows(episode, options)
      const sampled = episode.trajectories.flatMap(({ turns }) => turns.flatMap(({ completionTokenIds }) => [...completionTokenIds]))
      const ids = trained(assembly).flat()
      expect(new Set(ids).size).toBe(ids.length)
      for (const id of ids) expect(sampled).toContain(id)
      expect(assembly.sampled).toBe(sampled.length)
      expect(ids.length + totalCount(assembly.omitted)).toBe(sampled.length)
      if (options.rows !== 'all') expect(assembly.rows.length).toBeLessThanOrEqual(1)
      if (assembly.status === 'done') expect(assembly.rows.length).toBeGreaterThan(0)
      if (assembly.status === 'failed' && !options.evaluation) expect(ids).toEqual([])
      for (const { tokenIds, lossMask, rolloutLogprobs, promptLength, minVersion, maxVersion } of assembly.rows) {
        expect([lossMask.length, rolloutLogprobs.length]).toEqual([tokenIds.length, tokenIds.length])
        expect(lossMask.subarray(0, promptLength).includes(1)).toBe(false)
        expect(lossMask.includes(1)).toBe(true)
        expect(promptLength).toBeLessThan(tokenIds.length)
        expect(minVersion).toBeLessThanOrEqual(maxVersion)
        for (const [index, bit] of lossMask.entries()) if (bit === 1) expect(rolloutLogprobs[index]).toBe(-tokenIds[index]!)
        if (options.evaluation) continue
        expect(promptLength).toBeLessThanOrEqual(options.limits.maxPromptTokens)
        expect(tokenIds.length - promptLength).toBeLessThanOrEqual(options.limits.maxResponseTokens)
      }
    }),
    { numRuns: 500 },
  )
})

test('an episode that ended at a limit is trained with its reward, or fails where that is asked for; in an evaluation it keeps its score', () => {
  const episode: Episode = { ...makeEpisode([makeTrajectory([turn()])]), stopReason: 'truncated' }
  expect(toTrainerRows(episode, options())).toMatchObject({ status: 'done', omitted: {} })
  const excluded = toTrainerRows(episode, options({ incompleteEpisodes: 'exclude' }))
  expect(excluded).toMatchObject({ status: 'failed', rows: [], omitted: { 'truncated-episode': 2 }, sampled: 2 })
  expect(excluded.error?.message).toMatch(/ended as truncated; nothing of it is trained/)
  expect(toTrainerRows(episode, options({ incompleteEpisodes: 'exclude', evaluation: true }))).toMatchObject({
    status: 'done',
    error: null,
  })
})
