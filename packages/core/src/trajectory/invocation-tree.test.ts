import { expect, test } from 'vitest'
import type { Trajectory } from '../protocol/episode.ts'
import type { Turn } from '../protocol/turn.ts'
import { invocationTree } from './invocation-tree.ts'

/** An invocation that works from `from` to `to`, with one turn whose tool calls are `calls`. */
function invocation(
  id: string,
  [from, to]: readonly [number, number],
  startedBy: Trajectory['startedBy'] = [],
  calls: readonly string[] = [],
): Trajectory {
  const turn: Partial<Turn> = {
    index: 0,
    timing: { startedAt: from, endedAt: from + 1 },
    toolCalls: calls.map((call) => ({ id: call, name: 'ask', arguments: '{}' })),
  }
  const timing = { startedAt: from, endedAt: to }
  return { version: 2, id, agent: id.split(':')[0]!, policy: 'policy', trainable: true, startedBy, timing, turns: [turn as Turn] }
}
const askedBy = (trajectory: string, toolCall: string) => [{ trajectory, turn: 0, toolCall }]
const tookOver = (...trajectories: string[]) => trajectories.map((trajectory) => ({ trajectory, turn: 0, toolCall: null }))
const drawn = (invocations: readonly Trajectory[]) =>
  invocationTree(invocations).map(({ invocation: { id }, depth }) => '  '.repeat(depth) + id)

test('what one turn asked for stands in the order of its calls, whichever began first', () => {
  const readers = [
    invocation('reader:lead.0.1', [10, 20], askedBy('lead', 'b')),
    invocation('reader:lead.0.0', [11, 30], askedBy('lead', 'a'), ['x']),
  ]
  const helper = invocation('helper:reader:lead.0.0.0.0', [15, 18], askedBy('reader:lead.0.0', 'x'))
  const lead = invocation('lead', [0, 90], [], ['a', 'b'])
  const tree = ['lead', '  reader:lead.0.0', '    helper:reader:lead.0.0.0.0', '  reader:lead.0.1']
  expect(drawn([lead, ...readers, helper])).toEqual(tree)
  expect(drawn([helper, ...readers.toReversed(), lead])).toEqual(tree)
})

test('one that took over answers is beside those that gave them', () => {
  expect(
    drawn([
      invocation('a', [100, 120]),
      invocation('b', [100, 150]),
      invocation('c', [151, 190], tookOver('a', 'b'), ['ask']),
      invocation('c:2', [191, 199], tookOver('c')),
      invocation('h:c.0.0', [160, 170], askedBy('c', 'ask')),
      invocation('i', [171, 180], tookOver('h:c.0.0')),
    ]),
  ).toEqual(['a', 'b', 'c', '  h:c.0.0', '  i', 'c:2'])
})

test('one that was started and never worked is last, and an agent that was never started is left out', () => {
  const silent = { ...invocation('a', [0, 1], tookOver('b')), timing: null, turns: [] }
  const unused = { ...silent, id: 'c', startedBy: [] }
  expect(drawn([unused, silent, invocation('b', [5, 9])])).toEqual(['b', 'a'])
  expect(drawn([unused])).toEqual(['c'])
})

test('records that name a stranger, each other or themselves leave no invocation out', () => {
  const ids = drawn([
    invocation('a', [0, 9], askedBy('b', 'x')),
    invocation('b', [1, 9], askedBy('a', 'y')),
    invocation('c', [2, 9], tookOver('d')),
    invocation('d', [3, 9], tookOver('c')),
    invocation('e', [4, 9], askedBy('gone', 'z')),
    invocation('f', [5, 9], askedBy('f', 'z')),
    invocation('g', [6, 9], tookOver('g')),
  ])
  expect(ids.map((id) => id.trim()).sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
})
