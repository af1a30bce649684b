import { expect, it } from 'vitest'
import { sourceOfStack } from './error-source.ts'
import { TrainError } from './errors.ts'

it('finds the first line of the user behind lines of Node and of installed packages', () => {
  const stack = [
    'SyntaxError: Unexpected token (a)',
    '    at JSON.parse (<anonymous>)',
    '    at parse (/home/me/project/node_modules/zod/index.js:12:7)',
    '    at grade (file:///home/me/my%20project/reward.ts:14:9)',
    '    at async file:///home/me/project/other.ts:3:1',
  ].join('\n')
  expect(sourceOfStack(stack)).toBe('/home/me/my project/reward.ts:14')
})

it("finds Python's innermost line of the user", () => {
  const stack =
    'Traceback (most recent call last):\n  File "/p/reward.py", line 3, in grade\n    return unit(text)\n  File "/p/unit.py", line 8, in unit\n'
  expect(sourceOfStack(`${stack}  File "/venv/lib/python3.12/site-packages/x.py", line 1, in y\nValueError: no unit`)).toBe('/p/unit.py:8')
})

it.each([
  '    at /a/agent.ts:3:9',
  '    at async run (/a/agent.ts:3:9)',
  '    at new Tool (/a/agent.ts:3:9)',
  '    at async /a/agent.ts:3:9',
])('reads %s', (line) => expect(sourceOfStack(line)).toBe('/a/agent.ts:3'))

it('keeps with an error where its cause was thrown, and nothing of our own lines', () => {
  const cause = Object.assign(new Error('No.'), { stack: 'Error: No.\n    at run (/home/me/agent.ts:7:11)' })
  expect(new TrainError('AGENT_FAILED', 'No.', { cause }).toRecord()).toMatchObject({ source: '/home/me/agent.ts:7' })
  const wrapped = new TrainError('AGENT_FAILED', 'No.', { cause: new TrainError('REWARD_FAILED', 'No.', { cause }) })
  expect(wrapped.toRecord().source).toBe('/home/me/agent.ts:7')
  expect(new TrainError('AGENT_FAILED', 'No.', { cause: new Error('Ours.') }).toRecord()).not.toHaveProperty('source')
  expect(new TrainError('AGENT_FAILED', 'No.').toRecord()).not.toHaveProperty('source')
})
