// @module-tag quick
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { Sandbox, Workspace } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

const signal = new AbortController().signal
const MiB = 1024 * 1024
let sandbox: Sandbox
beforeEach(async () => {
  sandbox = await openSandbox({ tier: 'bubblewrap' })
})
afterEach(() => sandbox.close())

/** Processes that this one started and that run such a program. */
const children = (program: string) =>
  readdirSync('/proc/self/task')
    .flatMap((thread) => readFileSync(`/proc/self/task/${thread}/children`, 'utf8').split(' ').filter(Boolean))
    .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith(`${program}\0`))
    .map(Number)
const rooms = () => children('bwrap')
/** Jails that wait for their first program: a workspace that nobody has used stands once it has one. */
const standing = () => children('nsenter').length
const until = (condition: () => boolean) => vi.waitUntil(condition, { timeout: 60_000 })
/** Whether this process has not yet taken note of its end. */
const isThere = (pid: number) => existsSync(`/proc/${pid}`)
const print = async (workspace: Workspace, command: string) =>
  (await workspace.run({ command: ['bash', '-c', command], timeoutMs: 10_000 }, signal)).output

test('the next workspaces stand ready, and end with the sandbox', async () => {
  await sandbox.workspace({}, signal)
  await until(() => standing() === 3)
  const second = await sandbox.workspace({}, signal)
  expect(rooms()).toHaveLength(3)
  expect(await print(second, 'echo second')).toBe('second\n')
  await expect(sandbox.workspace({}, AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late')
  await until(() => rooms().length > 3)
  await sandbox.close()
  expect(rooms()).toEqual([])
})

test('one that died is not handed out', async () => {
  await sandbox.workspace({}, signal)
  const [first] = rooms()
  await until(() => standing() === 3)
  const ready = rooms().filter((pid) => pid !== first)
  for (const pid of ready) process.kill(pid, 'SIGKILL')
  await until(() => !ready.some(isThere))
  expect(await print(await sandbox.workspace({}, signal), 'echo alive')).toBe('alive\n')
})

test('one of other limits is not handed out, and makes room for those that are wanted', async () => {
  const size = async (workspace: Workspace) => Number(await print(workspace, 'echo $(($(stat -f -c "%b * %S" /workspace)))'))
  const open = (megabytes: number) => sandbox.workspace({ limits: { diskBytes: megabytes * MiB } }, signal)
  await open(8)
  const [first] = rooms()
  await until(() => standing() === 3)
  const ready = rooms().filter((pid) => pid !== first)
  expect(await size(await open(16))).toBe(16 * MiB)
  await until(() => standing() === 3 && !ready.some(isThere))
  const next = await open(16)
  expect(rooms()).toHaveLength(4)
  expect(await size(next)).toBe(16 * MiB)
})

test('a jail that ended before it had anything to run is replaced', async () => {
  const workspace = await sandbox.workspace({}, signal)
  // The next workspaces may stand already.
  await until(() => standing() >= 1)
  const [jail] = children('nsenter')
  process.kill(jail!, 'SIGKILL')
  await until(() => !isThere(jail!))
  expect(await print(workspace, 'echo here')).toBe('here\n')
})
