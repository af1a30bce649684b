import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { isAlive } from './testing/process-state.ts'

const index = new URL('./index.ts', import.meta.url)
const script = fileURLToPath(new URL('./testing/tool-server.ts', import.meta.url))
const program = (ending: string) => `
  import { createEnvironment } from ${JSON.stringify(index.href)}
  const environment = createEnvironment()
  const mcpConfig = { mcpServers: { test: { command: 'node', args: [${JSON.stringify(script)}, '--stubborn'] } } }
  const lease = environment.lease({ rollout: 'r', attempt: 0, sample: 0, task: { id: 't' } })
  const tools = await lease.tools({ agent: 'a', mcpConfig }, new AbortController().signal)
  const { content } = await tools.call({ name: 'where', arguments: {} }, new AbortController().signal)
  console.log(JSON.stringify({ pid: JSON.parse(content).pid, directory: lease.directory }))
  ${ending}
`

it.each([
  ['ends by itself', 'process.exit(0)', null, 0],
  ['throws', 'throw new Error("boom")', null, 1],
  ['is interrupted', 'setInterval(() => {}, 1000)', 'SIGINT', null],
  ['is terminated', 'setInterval(() => {}, 1000)', 'SIGTERM', null],
  ['is terminated and closes by itself', 'process.on("SIGTERM", async () => { await environment.close(); process.exit(7) })', 'SIGTERM', 7],
] as const)('leaves no server and no directory when our process %s', async (_, ending, signal, expected) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program(ending)], { stdio: ['ignore', 'pipe', 'ignore'] })
  const exited = once(child, 'exit')
  const [line] = await once(child.stdout, 'data')
  const { pid, directory } = JSON.parse(String(line))
  if (signal) {
    expect(isAlive(pid)).toBe(true)
    child.kill(signal)
  }
  const [code, endedBy] = await exited
  expect(code).toBe(expected)
  if (expected === null) expect(endedBy).toBe(signal)
  await expect.poll(() => isAlive(pid)).toBe(false)
  expect(existsSync(directory)).toBe(false)
})
