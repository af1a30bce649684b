import { expect, test } from 'vitest'
import { lengthOf, toRolloutColumns } from './rollout-columns.ts'
import { episodeOf, runRequest, turnChain } from './testing/run-fixtures.ts'

const span = (startedAt: number, endedAt: number) => ({ startedAt, endedAt })

test.each([
  ['nothing', [], 0],
  ['spans that follow one another', [span(0, 2), span(5, 6)], 3],
  ['spans that overlap, in any order', [span(4, 8), span(0, 5)], 8],
  ['a span within another', [span(0, 10), span(2, 3), span(9, 11)], 11],
  ['a clock that went back', [span(5, 4), span(4, 6)], 2],
])('time is counted once: %s', (_name, spans, length) => {
  expect(lengthOf(spans)).toBe(length)
})

test('model calls of agents that run at once count once, and tools only where no model call waits', () => {
  const turns = [...turnChain(0, 2, 1, 'planner'), ...turnChain(0, 1, 2, 'worker')].map((turn, index) => ({
    ...turn,
    timing: [span(100, 110), span(130, 140), span(105, 120)][index]!,
    ...(index === 2 && { cost: 0.25 }),
  }))
  const call = {
    agent: 'planner',
    trajectory: 'planner',
    turn: 0,
    id: 'a',
    name: 'search',
    arguments: '{}',
    content: '',
    isError: false,
    timing: span(115, 128),
  }
  const episode = episodeOf(runRequest('a'), 0, turns, { toolCalls: [call], timing: span(99, 150) })
  expect(toRolloutColumns(episode)).toMatchObject({
    startedAt: 99,
    endedAt: 150,
    engineMs: 30,
    toolsMs: 8,
    turns: 3,
    toolCalls: 1,
    sampledTokens: 9,
    cost: 0.25,
    reward: 1,
    stopReason: 'completed',
    error: null,
    answer: 'yes',
  })
})
