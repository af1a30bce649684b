import { spawn } from 'node:child_process'
import { expect, it } from 'vitest'
import { createProcessGuard } from './process-guard.ts'
import { StdioTransport } from './stdio-transport.ts'
import { isAlive } from './testing/process-state.ts'

it.each(['close', 'kill'] as const)('ends a process that has not been announced yet, by %s', async (end) => {
  const guard = createProcessGuard()
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true })
  const transport = new StdioTransport({ spawn: () => child, maxMessageBytes: 1_000, graceMs: 100, guard })
  const started = transport.start()
  await transport[end]()
  expect(isAlive(child.pid!)).toBe(false)
  await started
  guard.close()
})
