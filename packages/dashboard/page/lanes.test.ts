import type { InvocationTrace } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { lanesOf, mostAtOnce } from './lanes.ts'

const invocation = (
  id: string,
  depth: number,
  [startedAt, endedAt]: readonly [number, number],
  startedBy: InvocationTrace['startedBy'] = [],
): InvocationTrace => ({
  id,
  agent: id.split(':')[0]!,
  policy: 'policy',
  trainable: true,
  depth,
  startedBy,
  timing: { startedAt, endedAt },
  turns: [],
})
const askedBy = (trajectory: string) => [{ trajectory, turn: 0, toolCall: 'call' }]
const tookOver = (...trajectories: string[]) => trajectories.map((trajectory) => ({ trajectory, turn: 0, toolCall: null }))
const drawn = (lanes: ReturnType<typeof lanesOf>) =>
  lanes.map(({ invocation: { agent, depth }, detail }) => `${'  '.repeat(depth)}${agent}${detail}`)

const swarm = [
  invocation('lead', 0, [100, 190]),
  invocation('reader:lead.0.0', 1, [111, 130], askedBy('lead')),
  invocation('helper:reader:lead.0.0.0.0', 2, [115, 118], askedBy('reader:lead.0.0')),
  invocation('reader:lead.0.1', 1, [110, 120], askedBy('lead')),
  invocation('writer', 0, [191, 199], tookOver('lead')),
  invocation('lead:2', 0, [201, 205], tookOver('lead', 'writer')),
]

test('a lane says what its id adds to that of its caller, and is joined to the lanes of those that started it', () => {
  const lanes = lanesOf(swarm, 100)
  expect(drawn(lanes)).toEqual(['lead', '  reader.0.0', '    helper.0.0', '  reader.0.1', 'writer', 'lead:2'])
  expect(lanes.map(({ joins }) => joins)).toEqual([
    [],
    [{ rows: 1, at: 11 }],
    [{ rows: 1, at: 15 }],
    [{ rows: 3, at: 10 }],
    [{ rows: 4, at: 90 }],
    [
      { rows: 5, at: 90 },
      { rows: 1, at: 99 },
    ],
  ])
  expect(lanes[5]).toMatchObject({ at: 101, ms: 4 })
})

test('with an agent, only its lanes and those of its callers are left', () => {
  expect(drawn(lanesOf(swarm, 0, 'helper'))).toEqual(['lead', '  reader.0.0', '    helper.0.0'])
  expect(drawn(lanesOf(swarm, 0, 'writer'))).toEqual(['writer'])
  expect(lanesOf(swarm, 0, 'writer')[0]!.joins).toEqual([])
  expect(lanesOf(swarm, 0, 'nobody')).toEqual([])
})

test('an invocation that never worked, and one that a stranger started, have lanes', () => {
  const silent = { ...invocation('a', 0, [0, 1], tookOver('a', 'gone')), timing: null }
  expect(lanesOf([silent], 2)).toMatchObject([{ detail: '', at: null, ms: 0, joins: [] }])
})

test('what ends when another begins is not at the same time', () => {
  expect(mostAtOnce([])).toBe(0)
  expect(
    mostAtOnce([
      { at: 0, ms: 5 },
      { at: 5, ms: 5 },
    ]),
  ).toBe(1)
  expect(
    mostAtOnce([
      { at: 0, ms: 5 },
      { at: 4, ms: 5 },
      { at: 4.5, ms: 1 },
    ]),
  ).toBe(3)
})
