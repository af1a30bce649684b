import { openEnvironmentServer } from '@aworld-train/tools'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { createEnvironment, type McpConfig } from 'aworld-train'
import { expect, it } from 'vitest'
import { commandFor, makeTasks } from './tasks.ts'

const never = new AbortController().signal
const nothing = () => Promise.reject(new Error('not here'))

it('asks every rollout about its own file, which no other rollout sees or changes', async () => {
  await using stack = new AsyncDisposableStack()
  const sandbox = stack.adopt(await openSandbox({ tier: 'simulated' }), (each) => each.close())
  const parsers = { notices: [], parse: nothing, parseNative: nothing, close: async () => {} }
  const relay = () => ({ check: () => {}, send: nothing })
  const outward = { fetch: nothing, service: nothing, relay, hasService: () => false }
  const server = stack.adopt(await openEnvironmentServer({ sandbox, parsers, outward }), (each) => each.close())
  const headers = { Authorization: `Bearer ${server.connectionToken}`, MCP_SERVERS: 'terminal-server' }
  const mcpConfig: McpConfig = { mcpServers: { 'aworld-mcp': { type: 'streamable-http', url: server.url, headers } } }
  const environment = stack.adopt(createEnvironment(), (each) => each.close())

  const tasks = makeTasks(4, 7)
  const answers = await Promise.all(
    tasks.map(async ({ id, prompt, setup }) => {
      const lease = environment.lease({ rollout: id, attempt: 0, sample: 0, task: { id, setup } })
      const tools = await lease.tools({ agent: 'clerk', mcpConfig }, never)
      const [, item = ''] = /^How many (\w+) /.exec(prompt) ?? []
      const run = async (command: string) =>
        (await tools.call({ name: 'terminal-server__execute_command', arguments: { command } }, never)).content
      await run(`echo ${id} >> seen.txt`)
      return [await run(commandFor(item)), await run('cat seen.txt; ls')]
    }),
  )
  expect(answers).toEqual(
    tasks.map(({ id, prompt, answer }) => [
      expect.stringContaining(`\n${/^How many (\w+) /.exec(prompt)![1]} ${answer}\n`),
      expect.stringContaining(`\n${id}\nseen.txt\nstock.txt\n`),
    ]),
  )
})
