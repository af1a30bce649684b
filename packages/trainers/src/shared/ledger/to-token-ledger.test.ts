import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelKey, type Episode, type RowSelection, type StopReason, type Turn } from '@aworld-train/core'
import type { RecordedCall } from '@aworld-train/store'
import { expect, it, onTestFinished } from 'vitest'
import { type IncarnationLedger, readLedger } from './read-ledger.ts'
import { lastStandingSteps } from './standing-batches.ts'
import { toTokenLedger } from './to-token-ledger.ts'

const keyOf = (incarnation: string, step: number, uid: string, sample = 0, partition: 'train' | 'val' = 'train') =>
  channelKey({ run: 'run', incarnation, partition, step, uid, sample })

/** An episode of one turn of `tokens`. */
function episodeOf(rollout: string, tokens: number, { reward = 1, stopReason = 'completed' as StopReason, attempt = 0 } = {}): Episode {
  const turn: Turn = {
    version: 2,
    index: 0,
    agent: 'a',
    trajectory: 'a',
    attempt,
    parent: null,
    promptTokenIds: Int32Array.of(1, 2),
    completionTokenIds: new Int32Array(tokens).fill(3),
    rolloutLogprobs: new Float32Array(tokens).fill(-1),
    weightVersions: [{ fromToken: 0, version: 0 }],
    finishReason: { unified: 'stop', raw: 'stop' },
    delivered: 'delivered',
    message: { role: 'assistant', content: 'x' },
    messagesDelta: [],
    toolCalls: [],
    usage: { promptTokens: 2, completionTokens: tokens, cachedTokens: 0 },
    timing: { startedAt: 0, endedAt: 1 },
    capture: { tokens: 'token-in', logprobs: 'temperature' },
    branchReasons: ['root'],
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 99, stop: [], seed: 0 },
  }
  return {
    version: 2,
    rollout,
    attempt,
    taskId: 't',
    group: 'g',
    sample: 0,
    split: 'train',
    trajectories: [{ version: 2, id: 'a', agent: 'a', policy: 'model', trainable: true, startedBy: [], timing: null, turns: [turn] }],
    toolCalls: [],
    answer: 'x',
    messages: [],
    scores: {},
    reward,
    stopReason,
    timing: { startedAt: 0, endedAt: 1 },
  }
}

interface World {
  readonly ledgers: IncarnationLedger[]
  readonly calls: RecordedCall[]
  readonly episodes: Map<string, Episode>
}

function account({ ledgers, calls, episodes }: World, resumed: readonly number[] = [0], rows: RowSelection = 'all', ownReward = 0) {
  return toTokenLedger({
    ledgers,
    incarnations: ledgers.map(({ incarnation }, index) => ({ incarnation, resumedFromStep: resumed[index] ?? 0 })),
    calls,
    episode: (key) => episodes.get(key) ?? null,
    rows: { rows, limits: { maxPromptTokens: 100, maxResponseTokens: 100 }, reward: 'service', ownReward },
  })
}

const sampledLine = (key: string, tokens: number) => ({ key, id: '1', version: 0, tokens })
const batch = (step: number, keys: Record<string, number>) => ({
  step,
  keys: Object.entries(keys).map(([key, maskTokens]) => ({ key, rows: 1, maskTokens })),
  rowsPadded: 0,
  maxLogprobDifference: 1e-6 * step,
})

it('gives a reason for every token that is not trained', () => {
  const [trained, failed, unused, validated, cancelled, twice] = [
    keyOf('i', 1, 'u', 0),
    keyOf('i', 1, 'u', 1),
    keyOf('i', 1, 'v', 0),
    keyOf('i', 0, 'w', 0, 'val'),
    keyOf('i', 1, 'x', 0),
    keyOf('i', 1, 'u', 2),
  ]
  const world: World = {
    ledgers: [
      {
        incarnation: 'i',
        sampled: [
          sampledLine(trained, 5),
          sampledLine(trained, 2),
          sampledLine(failed, 7),
          sampledLine(unused, 11),
          sampledLine(validated, 13),
          sampledLine(cancelled, 17),
          sampledLine(twice, 3),
          sampledLine(twice, 4),
        ],
        trained: [batch(1, { [trained]: 5, [twice]: 4 })],
        undelivered: [],
        engineTokens: null,
      },
    ],
    calls: [
      { key: trained, attempt: 0, tokens: 5 },
      { key: failed, attempt: 0, tokens: 7 },
      { key: unused, attempt: 0, tokens: 11 },
      { key: validated, attempt: 0, tokens: 13 },
      { key: cancelled, attempt: 0, tokens: 17 },
      { key: twice, attempt: 0, tokens: 3 },
      { key: twice, attempt: 1, tokens: 4 },
    ],
    episodes: new Map([
      [trained, episodeOf(trained, 5)],
      [failed, episodeOf(failed, 7, { stopReason: 'failed' })],
      [unused, episodeOf(unused, 11)],
      [validated, episodeOf(validated, 13)],
      [twice, episodeOf(twice, 4, { reward: 0, attempt: 1 })],
    ]),
  }
  const { ledger, trainedTwice, logprobDifference } = account(world)
  expect(ledger).toEqual({
    version: 1,
    sampled: 62,
    trained: 9,
    untrained: {
      evaluation: 13,
      'abandoned-turn': 2,
      'failed-episode': 7,
      'unselected-by-trainer': 11,
      'cancelled-episode': 17,
      'superseded-attempt': 3,
    },
    unexplained: 0,
    withVariance: { sampled: 21, trained: 9 },
  })
  expect(trainedTwice).toEqual([])
  expect(logprobDifference).toEqual({ first: 1e-6, largest: 1e-6 })
})

it.each([
  [0, { sampled: 0, trained: 0 }],
  [0.5, { sampled: 12, trained: 12 }],
])('counts a group as one with variance by the rewards of its rows: ownReward %d', (ownReward, withVariance) => {
  const [one, other] = [keyOf('only', 1, 'u'), keyOf('only', 1, 'u', 1)]
  const ledgers = [
    {
      incarnation: 'only',
      sampled: [sampledLine(one, 5), sampledLine(other, 7)],
      trained: [batch(1, { [one]: 5, [other]: 7 })],
      undelivered: [],
      engineTokens: null,
    },
  ]
  const calls = [
    { key: one, attempt: 0, tokens: 5 },
    { key: other, attempt: 0, tokens: 7 },
  ]
  const episodes = new Map([
    [one, { ...episodeOf(one, 5), agentRewards: { a: 0 } }],
    [other, { ...episodeOf(other, 7), agentRewards: { a: 1 } }],
  ])
  expect(account({ ledgers, calls, episodes }, [0], 'all', ownReward).ledger).toMatchObject({ unexplained: 0, withVariance })
})

it('names what a restart from a checkpoint discarded, and counts no step twice', () => {
  const [kept, lost, again] = [keyOf('old', 1, 'u'), keyOf('old', 2, 'v'), keyOf('new', 2, 'v')]
  const world: World = {
    ledgers: [
      {
        incarnation: 'old',
        sampled: [sampledLine(kept, 5), sampledLine(lost, 7)],
        trained: [batch(1, { [kept]: 5 }), batch(2, { [lost]: 7 })],
        undelivered: [],
        engineTokens: 12,
      },
      { incarnation: 'new', sampled: [sampledLine(again, 3)], trained: [batch(2, { [again]: 3 })], undelivered: [], engineTokens: 3 },
    ],
    calls: [kept, lost, again].map((key) => ({ key, attempt: 0, tokens: { [kept]: 5, [lost]: 7, [again]: 3 }[key]! })),
    episodes: new Map([
      [kept, episodeOf(kept, 5)],
      [lost, episodeOf(lost, 7)],
      [again, episodeOf(again, 3)],
    ]),
  }
  const { ledger, superseded, engineTokens } = account(world, [0, 1])
  expect(ledger).toMatchObject({ sampled: 15, trained: 8, untrained: { 'superseded-attempt': 7 }, unexplained: 0 })
  expect(superseded).toEqual([{ incarnation: 'old', steps: [2], tokens: 7 }])
  expect(engineTokens).toBe(15)
})

it.each([
  ['a batch that lacks a sampled token', { maskTokens: 4, answered: 5 }, 1],
  ['a batch with a token that nobody sampled', { maskTokens: 6, answered: 5 }, -1],
  ['a turn that no engine answered', { maskTokens: 5, answered: 0 }, -5],
])('leaves %s unexplained', (_, { maskTokens, answered }, unexplained) => {
  const key = keyOf('i', 1, 'u')
  const { ledger } = account({
    ledgers: [
      {
        incarnation: 'i',
        sampled: answered === 0 ? [] : [sampledLine(key, answered)],
        trained: [batch(1, { [key]: maskTokens })],
        undelivered: [],
        engineTokens: null,
      },
    ],
    calls: [{ key, attempt: 0, tokens: 5 }],
    episodes: new Map([[key, episodeOf(key, 5)]]),
  })
  expect(ledger.unexplained).toBe(unexplained)
})

it('accounts for a rollout whose record was damaged: what was trained of it, and the rest as lost', () => {
  const [trained, unused] = [keyOf('one', 1, 'a'), keyOf('one', 1, 'b')]
  const { ledger } = account({
    ledgers: [
      {
        incarnation: 'one',
        sampled: [sampledLine(trained, 5), sampledLine(trained, 4), sampledLine(unused, 3)],
        trained: [batch(1, { [trained]: 5 })],
        undelivered: [],
        engineTokens: null,
      },
    ],
    calls: [
      { key: trained, attempt: 0, tokens: 5 },
      { key: trained, attempt: 0, tokens: 4, isLost: true },
      { key: unused, attempt: 0, tokens: 3, isLost: true },
    ],
    episodes: new Map(),
  })
  expect(ledger).toMatchObject({ sampled: 12, trained: 5, untrained: { 'lost-record': 7 }, unexplained: 0 })
})

it('names a rollout that stands in two batches', () => {
  const key = keyOf('i', 1, 'u')
  const { trainedTwice, ledger } = account({
    ledgers: [
      {
        incarnation: 'i',
        sampled: [sampledLine(key, 5)],
        trained: [batch(1, { [key]: 5 }), batch(2, { [key]: 5 })],
        undelivered: [],
        engineTokens: null,
      },
    ],
    calls: [{ key, attempt: 0, tokens: 5 }],
    episodes: new Map([[key, episodeOf(key, 5)]]),
  })
  expect(trainedTwice).toEqual([key])
  expect(ledger.unexplained).toBe(-5)
})

it('knows which steps of each start stand', () => {
  const starts = [0, 4, 2].map((resumedFromStep, index) => ({ incarnation: String(index), resumedFromStep }))
  expect([...lastStandingSteps(starts)].sort()).toEqual([
    ['0', 2],
    ['1', 2],
    ['2', Number.POSITIVE_INFINITY],
  ])
})

it('reads what the bridge wrote, without a line that a kill tore', () => {
  const path = mkdtempSync(join(tmpdir(), 'awt-ledger-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  const directory = join(path, 'ledger', 'i')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'sampled-1.jsonl'), '{"key":"a","id":7,"version":0,"tokens":5}\n{"key":"b","id":')
  writeFileSync(join(directory, 'sampled-2.jsonl'), '{"key":"c","id":"x","version":null,"tokens":2}\n')
  writeFileSync(
    join(directory, 'trained-3.jsonl'),
    '{"step":1,"keys":[{"key":"a","rows":1,"maskTokens":5}],"rowsPadded":0,"maxLogprobDifference":null}\n',
  )
  writeFileSync(join(directory, 'undelivered-1.jsonl'), '{"key":"c","id":"x","tokens":2,"reason":"connection-lost"}\n')
  writeFileSync(join(directory, 'engine-4.jsonl'), '{"requestId":"r","tokens":7,"version":0}\n')
  expect(readLedger(path, 'i')).toMatchObject({
    sampled: [
      { key: 'a', id: '7', tokens: 5 },
      { key: 'c', tokens: 2 },
    ],
    trained: [{ step: 1, keys: [{ key: 'a', maskTokens: 5 }] }],
    undelivered: [{ key: 'c', tokens: 2, reason: 'connection-lost' }],
    engineTokens: 7,
  })
  expect(readLedger(path, 'absent')).toMatchObject({ sampled: [], trained: [], undelivered: [], engineTokens: null })
})

it('tells what nobody received, as the bridge says, from what died with this process', () => {
  const [key, other] = [keyOf('i', 1, 'u'), keyOf('i', 1, 'v')]
  const { ledger, undelivered, lostWithoutWord } = account({
    ledgers: [
      {
        incarnation: 'i',
        sampled: [sampledLine(key, 5), sampledLine(key, 5), sampledLine(key, 9), sampledLine(other, 4)],
        trained: [batch(1, { [key]: 5 })],
        undelivered: [
          { key, tokens: 5, reason: 'connection-lost' },
          { key, tokens: 9, reason: 'aborted' },
        ],
        engineTokens: null,
      },
    ],
    calls: [{ key, attempt: 0, tokens: 5 }],
    episodes: new Map([[key, episodeOf(key, 5)]]),
  })
  expect(ledger).toMatchObject({ sampled: 23, trained: 5, untrained: { 'abandoned-turn': 18 }, unexplained: 0 })
  expect(undelivered).toEqual({ 'connection-lost': 5, aborted: 9 })
  expect(lostWithoutWord).toBe(4)
})

it('tells the agents of a swarm apart where a trainer takes the row of one of them', () => {
  const [taken, unused] = [keyOf('i', 1, 'u', 0), keyOf('i', 1, 'v', 0)]
  const swarmOf = (key: string): Episode => {
    const { trajectories, ...episode } = episodeOf(key, 5)
    const turns = trajectories[0]!.turns.map((turn) => ({
      ...turn,
      agent: 'b',
      trajectory: 'b',
      timing: { startedAt: 2, endedAt: 3 },
      completionTokenIds: new Int32Array(3).fill(4),
      rolloutLogprobs: new Float32Array(3).fill(-1),
    }))
    return { ...episode, trajectories: [trajectories[0]!, { ...trajectories[0]!, agent: 'b', turns }] }
  }
  const calls = [taken, unused].flatMap((key) => [5, 3].map((tokens) => ({ key, attempt: 0, tokens })))
  const sampled = calls.map(({ key, tokens }) => sampledLine(key, tokens))
  const ledgers = [{ incarnation: 'i', sampled, trained: [batch(1, { [taken]: 3 })], undelivered: [], engineTokens: null }]
  const { agents, ledger } = account({ ledgers, calls, episodes: new Map([taken, unused].map((key) => [key, swarmOf(key)])) }, [0], 'last')
  expect(agents).toEqual({
    a: { sampled: 0, trained: 0, untrained: { 'unselected-by-trainer': 10 } },
    b: { sampled: 0, trained: 3, untrained: { 'unselected-by-trainer': 3 } },
  })
  expect(ledger).toMatchObject({ sampled: 16, trained: 3, untrained: { 'unselected-by-trainer': 13 }, unexplained: 0 })
})
