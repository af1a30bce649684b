// @module-tag quick
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { expect, test, vi } from 'vitest'
import { unreapedBelowUs } from './processes.ts'

const signal = new AbortController().signal
const port = 23_128

async function open() {
  const sandbox = await openSandbox({ tier: 'bubblewrap' })
  return { sandbox, workspace: await sandbox.workspace({ env: { WORD: "it's" } }, signal) }
}

const ask = { command: ['bash', '-c', `cat < /dev/tcp/127.0.0.1/${port}; echo "$WORD"`] as const, timeoutMs: 20_000 }

/** Whether this process holds any socket of the port. */
const heldHere = () => readFileSync('/proc/self/net/tcp', 'utf8').includes(port.toString(16).toUpperCase())

test('a port answers the programs of its workspace alone, from this process, until its signal aborts', async () => {
  const { sandbox, workspace } = await open()
  const other = await sandbox.workspace({}, signal)
  const until = new AbortController()
  await workspace.listen(port, (connection) => connection.end('hello '), until.signal)
  expect((await workspace.run(ask, signal)).output).toBe("hello it's\n")
  const shell = await workspace.shell(signal)
  expect((await shell.execute(ask.command[2], 20_000, signal)).output).toBe("hello it's\n")
  expect((await other.run(ask, signal)).output).toContain('Connection refused')
  const [refused] = await once(connect(port, '127.0.0.1'), 'error')
  expect(refused).toMatchObject({ code: 'ECONNREFUSED' })
  expect(heldHere()).toBe(false)
  await expect(workspace.listen(port, () => {}, signal)).rejects.toThrow(`Port ${port} of the workspace cannot be opened (EADDRINUSE)`)
  until.abort()
  expect((await workspace.run(ask, signal)).output).toContain('Connection refused')
  await workspace.listen(port, (connection) => connection.end('again '), signal)
  expect((await workspace.run(ask, signal)).output).toBe("again it's\n")
  await sandbox.close()
  await expect(workspace.listen(port, () => {}, signal)).rejects.toThrow('The workspace is closed.')
  expect(unreapedBelowUs()).toEqual([])
})

test('connections end with the workspace, and an error of their handler ends only the workspace', async () => {
  const { sandbox, workspace } = await open()
  const connections: Socket[] = []
  await workspace.listen(port, (connection) => connections.push(connection), signal)
  const running = workspace.run(ask, signal).catch(() => {})
  await vi.waitUntil(() => connections.length === 1, { timeout: 20_000 })
  await workspace.close()
  await running
  expect(connections[0]!.destroyed).toBe(true)
  const failing = await sandbox.workspace({}, signal)
  await failing.listen(
    port,
    () => {
      throw new Error('a fault')
    },
    signal,
  )
  await failing.run(ask, signal).catch(() => {})
  await expect(failing.run(ask, signal)).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED' })
  await sandbox.close()
  expect(unreapedBelowUs()).toEqual([])
})

test('an aborted start leaves neither a process nor a port', async () => {
  const { sandbox, workspace } = await open()
  const until = new AbortController()
  const starting = workspace.listen(port, () => {}, until.signal)
  until.abort(new Error('enough'))
  await expect(starting).rejects.toThrow('enough')
  await vi.waitUntil(async () => (await workspace.run(ask, signal)).output.includes('refused'), { timeout: 20_000 })
  await sandbox.close()
  await vi.waitUntil(() => unreapedBelowUs().length === 0, { timeout: 20_000 })
})
