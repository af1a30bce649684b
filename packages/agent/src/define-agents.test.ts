import { expect, test } from 'vitest'
import { defineAgents } from './define-agents.ts'

const run = () => 'done'

test('an agent is trained, unless it has a model of its own or says otherwise', () => {
  const mcpConfig = { mcpServers: { pages: { command: 'node' } } }
  const program = defineAgents({ lead: {}, reader: { mcp_config: mcpConfig }, judge: { model: 'gpt' }, old: { trainable: false } }, run)
  expect(program.agents).toEqual([
    { name: 'lead', trainable: true, randomKey: 'prompt' },
    { name: 'reader', trainable: true, randomKey: 'prompt', mcpConfig },
    { name: 'judge', trainable: false, randomKey: 'prompt', model: 'gpt' },
    { name: 'old', trainable: false, randomKey: 'prompt' },
  ])
})

test.each([
  ['no agent', {}, run, 'defineAgents names no agent'],
  ['null', null, run, 'defineAgents got null as its agents; name each, such as { lead: {}, reader: {} }.'],
  ['no function', { lead: {} }, 'done', 'defineAgents got "done" to run; pass a function'],
  ['an unknown option', { lead: { modle: 'gpt' } }, run, 'Agent "lead": unknown option "modle"; did you mean "model"?'],
  ['no options', { lead: 'gpt' }, run, 'Agent "lead": expected an object of options, got "gpt".'],
])('%s is refused', (_, agents, source, message) => {
  expect(() => defineAgents(agents as never, source as never)).toThrow(message)
})
