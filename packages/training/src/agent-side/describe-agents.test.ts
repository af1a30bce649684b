import { expect, it } from 'vitest'
import { checkRows, describeAgents, rowsWarning } from './describe-agents.ts'

const agent = (name: string, trainable: boolean) => ({ name, trainable })

it.each([
  ['one agent', [agent('solver', true)], 'last', 'solver trained'],
  [
    'a trained one among others',
    [agent('plan', false), agent('solver', true), agent('sum', false)],
    'all',
    'solver trained; plan, sum frozen',
  ],
  ['several trained ones', [agent('a', true), agent('b', true)], null, 'a, b trained'],
  [
    'those of several policies',
    [
      { ...agent('a', true), model: 'lead' },
      { ...agent('b', false), model: 'reader' },
    ],
    null,
    'a (lead) trained; b frozen',
  ],
  [
    'several trained ones under a framework',
    [agent('a', true), agent('b', true), agent('c', false)],
    'last',
    'a, b trained; c frozen; rows "last": of each rollout only the conversation that gave the answer is trained',
  ],
  [
    'several trained ones of which one has the rows',
    [agent('a', true), agent('b', true)],
    { role: 'b' },
    'a, b trained; rows { role: "b" }: of each rollout only the last conversation of "b" is trained',
  ],
] as const)('names the trained and the frozen of %s', (_, agents, rows, text) => {
  expect(describeAgents(agents, rows)).toBe(text)
})

const agents = [agent('planner', true), agent('reader', true), agent('judge', false)]

it('refuses rows of an agent that is unknown or not trained, and names those that are', () => {
  expect(() => checkRows(agents, { role: 'reader' })).not.toThrow()
  expect(() => checkRows(agents, { role: 'planer' })).toThrow(
    'rows.role is "planer", which is no agent of the program; the trained agents are "planner", "reader". Did you mean "planner"?',
  )
  expect(() => checkRows(agents, { role: 'judge' })).toThrow('rows.role is "judge", which is an agent that is not trained')
})

it('warns where one row a rollout leaves agents out that are trained', () => {
  expect(rowsWarning(agents, 'last')).toBe(
    'rows is "last" and 2 agents are trained (planner, reader): of each rollout only the conversation that gave the answer is trained, and everything else that they sample is left out. Name one with { role: "planner" }.',
  )
  expect(rowsWarning(agents, 'longest')).toContain('only the longest conversation')
  expect([rowsWarning(agents, 'all'), rowsWarning(agents, { role: 'reader' }), rowsWarning(agents.slice(1), 'last')]).toEqual([
    null,
    null,
    null,
  ])
})
