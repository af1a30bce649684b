import { expect, test } from 'vitest'
import { sharedServersWarning } from './shared-servers.ts'

const server = (stateless?: boolean) => ({ command: 'node', args: ['server.ts'], ...(stateless && { stateless }) })
const program = (agents: Record<string, Record<string, ReturnType<typeof server>>>, ...sideBySide: [string, string][]) => ({
  agents: Object.entries(agents).map(([name, mcpServers]) => ({ name, trainable: true, mcpConfig: { mcpServers } })),
  sideBySide,
  run: async () => ({ answer: null, messages: [] }),
})

test('one warning names the agents that share a server with a state, and the server', () => {
  const terminal = { terminal: server() }
  const agents = { lead: {}, reader: terminal, coder: terminal }
  expect(sharedServersWarning(program(agents, ['coder', 'reader'], ['reader', 'reader']))).toBe(
    'Agents that may work at once share servers that keep a state: "coder" with "reader" the server "terminal", "reader" with itself the server "terminal". What one does there, the other finds. Set "stateless": true for a server that keeps nothing between calls, or give each agent one of its own.',
  )
})

test('there is none for servers that keep nothing, servers of their own, and agents that work one after another', () => {
  const stateless = { terminal: server(true) }
  expect(sharedServersWarning(program({ a: stateless, b: stateless }, ['a', 'b']))).toBeNull()
  expect(sharedServersWarning(program({ a: { one: server() }, b: { two: server() } }, ['a', 'b']))).toBeNull()
  expect(sharedServersWarning(program({ a: { one: server() }, b: { one: { ...server(), args: ['other.ts'] } } }, ['a', 'b']))).toBeNull()
  expect(sharedServersWarning(program({ a: { one: server() }, b: { one: server() } }))).toBeNull()
})
