import { expect, it } from 'vitest'
import { describeAgents } from './describe-agents.ts'

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
    'several trained ones under a framework',
    [agent('a', true), agent('b', true), agent('c', false)],
    'last',
    'a, b trained; c frozen; rows "last": of each rollout only the conversation that ended last is trained',
  ],
] as const)('names the trained and the frozen of %s', (_, agents, rows, text) => {
  expect(describeAgents(agents, rows)).toBe(text)
})
