import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { InvocationRecord } from '../protocol/attempt.ts'
import type { Trajectory } from '../protocol/episode.ts'
import type { Turn } from '../protocol/turn.ts'
import { makeTrajectory } from './arbitrary-episode.test-support.ts'
import {
  answering,
  answeringTrajectory,
  compareIds,
  invocationEndpoint,
  invocationId,
  invocationPlace,
  linkInvocations,
  placeOfCall,
  workedSideBySide,
} from './invocations.ts'

const agents = ['the planner', 'reader', 'helper']

test.each([
  ['', 'reader'],
  ['2', 'reader:2'],
  ['0.0.1', 'reader:the planner.0.1'],
  ['0:2.3.1', 'reader:the planner:2.3.1'],
  ['2:0.0.1.4.0', 'reader:helper:the planner.0.1.4.0'],
  ['0.0.1-2', 'reader:the planner.0.1-2'],
  ['2:0.0.1-2.4.0', 'reader:helper:the planner.0.1-2.4.0'],
  ['0.1', 'reader:0.1'],
  ['9.0.1', 'reader:9.0.1'],
  ['chapter-3', 'reader:chapter-3'],
])('the place %s of a reader reads %s', (place, id) => expect(invocationId(agents, 'reader', place)).toBe(id))

test('whoever asks whom, the id names all callers, and no two places have one id', () => {
  const call = fc.record({ agent: fc.nat(2), turn: fc.nat(12), call: fc.nat(12) })
  fc.assert(
    fc.property(fc.array(call, { minLength: 1, maxLength: 8 }), fc.array(call, { minLength: 1, maxLength: 8 }), (first, second) => {
      const placed = (calls: typeof first) => calls.reduce((place, { agent, turn, call }) => placeOfCall({ agent, place }, turn, call), '')
      const [a, b] = [placed(first), placed(second)]
      expect(a).toMatch(invocationPlace)
      expect(invocationId(agents, 'helper', a) === invocationId(agents, 'helper', b)).toBe(a === b)
    }),
  )
})

test('numbers in ids are ordered as numbers', () => {
  const ids = ['reader:planner.0.10', 'reader:planner.0.2', 'reader:10', 'reader', 'reader:2', 'reader:planner.0.2.0.1']
  expect(ids.toSorted(compareIds)).toEqual([
    'reader',
    'reader:2',
    'reader:10',
    'reader:planner.0.2',
    'reader:planner.0.2.0.1',
    'reader:planner.0.10',
  ])
})

test('the place stands in the URL of a gateway, and in no other', () => {
  const endpoint = (baseUrl: string) => ({ baseUrl, apiKey: 'k', model: 'm' })
  expect(invocationEndpoint(endpoint('http://h:1/r/a.0.b.mac/v1'), '0.0.1').baseUrl).toBe('http://h:1/r/a.0.b.mac/~0.0.1/v1')
  expect(invocationEndpoint(endpoint('http://h:1/r/a.0.b.mac/v1'), '').baseUrl).toBe('http://h:1/r/a.0.b.mac/v1')
  expect(invocationEndpoint(endpoint('https://api.example.com/v1'), '2').baseUrl).toBe('https://api.example.com/v1')
})

const turnsAt = (...spans: readonly (readonly [startedAt: number, endedAt: number, toolCall?: string])[]): Turn[] =>
  makeTrajectory(
    spans.map((_, i) => ({ parent: i - 1, delivered: 'delivered', added: 0, completion: 1, attempt: 0, version: 0 })),
  ).turns.map((turn, i) => {
    const [startedAt, endedAt, id] = spans[i]!
    return { ...turn, timing: { startedAt, endedAt }, toolCalls: id === undefined ? [] : [{ id, name: 'ask', arguments: '{}' }] }
  })
const trajectory = (id: string, turns: Turn[], more: Partial<Trajectory> = {}) =>
  makeTrajectory([], { id, agent: id.split(':')[0]!, turns, ...more })
const invocation = (id: string, startedBy: InvocationRecord['startedBy'], timing: InvocationRecord['timing'] = null): InvocationRecord => ({
  id,
  agent: id.split(':')[0]!,
  startedBy,
  answered: true,
  timing,
})

test('invocations are linked to the turns that started them, silent ones have no turns, and all are in the order of the program', () => {
  const recorded = [
    trajectory('lead', turnsAt([0, 1, 'c0'], [5, 6])),
    trajectory('reader', []),
    trajectory('reader:lead.0.0', turnsAt([2, 3])),
  ]
  const linked = linkInvocations(recorded, [
    invocation('reader:lead.0.0', [{ trajectory: 'lead', toolCall: 'c0' }], { startedAt: 1.5, endedAt: 4 }),
    invocation('reader:lead.0.1', [{ trajectory: 'lead', toolCall: 'lost' }], { startedAt: 1.5, endedAt: 2 }),
    invocation('reader:2', [{ trajectory: 'lead', toolCall: null }]),
    invocation('reader:0.0', [{ trajectory: null, toolCall: 'c0' }]),
    invocation('reader:9.9', [{ trajectory: null, toolCall: 'of nobody' }]),
    invocation('lead', [], { startedAt: 0, endedAt: 7 }),
  ])
  expect(linked.map(({ id, startedBy, timing, turns }) => [id, startedBy, timing, turns.length])).toEqual([
    ['lead', [], { startedAt: 0, endedAt: 7 }, 2],
    ['reader', [], null, 0],
    ['reader:0.0', [{ trajectory: 'lead', turn: 0, toolCall: 'c0' }], null, 0],
    ['reader:2', [{ trajectory: 'lead', turn: 1, toolCall: null }], null, 0],
    ['reader:9.9', [], null, 0],
    ['reader:lead.0.0', [{ trajectory: 'lead', turn: 0, toolCall: 'c0' }], { startedAt: 1.5, endedAt: 4 }, 1],
    ['reader:lead.0.1', [{ trajectory: 'lead', turn: null, toolCall: 'lost' }], { startedAt: 1.5, endedAt: 2 }, 0],
  ])
})

test('the answer is of the invocation at the end of the program, whenever others ended', () => {
  const handed = (from: string) => ({ startedBy: [{ trajectory: from, turn: 0, toolCall: null }] })
  const byCall = (by: string) => ({ startedBy: [{ trajectory: by, turn: 0, toolCall: 'c' }] })
  const ids = (...all: Trajectory[]) => answering(all).map(({ id }) => id)
  const turns = turnsAt([0, 1])
  expect(ids(trajectory('lead', turns), trajectory('reader:lead.0.0', turnsAt([8, 9]), byCall('lead')))).toEqual(['lead'])
  expect(ids(trajectory('a', turnsAt([8, 9])), trajectory('b', turns, handed('a')))).toEqual(['b'])
  expect(ids(trajectory('a', turns), trajectory('b', [], handed('a')))).toEqual(['a'])
  expect(ids(trajectory('a', turns), trajectory('b', turns))).toEqual(['a', 'b'])
})

test('of several invocations that may have answered it is the last that wrote the answer, else the last, whenever they ended', () => {
  const saying = (content: string, endedAt: number) =>
    turnsAt([0, endedAt]).map((turn) => ({ ...turn, message: { role: 'assistant' as const, content } }))
  const all = [trajectory('a', saying('one', 9)), trajectory('b', saying('two', 5)), trajectory('c', saying('two', 7))]
  const idFor = (answer: string | null) => answeringTrajectory(all, answer)?.id
  expect([idFor('one'), idFor('two'), idFor('{"a":"one","b":"two"}'), idFor(null)]).toEqual(['a', 'c', 'c', 'c'])
  expect(answeringTrajectory([], 'x')).toBeUndefined()
})

test('a limit is met side by side if an invocation that it cut worked beside another that is no caller of it', () => {
  const span = (startedAt: number, endedAt: number) => ({ timing: { startedAt, endedAt } })
  const byCall = { startedBy: [{ trajectory: 'lead', turn: 0, toolCall: 'c' }] }
  const lead = trajectory('lead', [], span(0, 9))
  const first = trajectory('reader:lead.0.0', [], { ...span(1, 4), ...byCall })
  const beside = trajectory('reader:lead.0.1', [], { ...span(2, 5), ...byCall })
  const after = trajectory('reader:lead.1.0', [], { ...span(6, 8), ...byCall })
  const cut = (all: Trajectory[], ...answered: string[]) => {
    const records = all.map(({ id, timing }) => invocation(id, [], timing))
    return workedSideBySide(all, records, (id) => !answered.includes(id))
  }
  expect(cut([lead, first])).toBe(false)
  expect(cut([lead, first, beside])).toBe(true)
  expect(cut([lead, first, beside], first.id, beside.id)).toBe(false)
  expect(cut([lead, first, after], first.id)).toBe(false)
})

test('what a program does not declare worked side by side if its calls did', () => {
  const undeclared = (...all: Trajectory[]) => workedSideBySide(all, [], () => true)
  expect(undeclared(trajectory('agent', turnsAt([0, 2], [2, 4])))).toBe(false)
  expect(undeclared(trajectory('agent', turnsAt([0, 2], [5, 6], [1, 4])))).toBe(true)
  expect(undeclared(trajectory('planner', turnsAt([0, 2], [4, 6])), trajectory('executor', turnsAt([2, 4])))).toBe(false)
  expect(undeclared(trajectory('planner', turnsAt([0, 2], [4, 6])), trajectory('executor', turnsAt([2, 5])))).toBe(true)
})
