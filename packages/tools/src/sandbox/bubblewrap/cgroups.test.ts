import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ownName } from '@aworld-train/core'
import { afterEach, expect, test } from 'vitest'
import { findCgroups } from './cgroups.ts'

const root = mkdtempSync(join(tmpdir(), 'cgroups-test-'))
afterEach(() => rmSync(root, { recursive: true, force: true }))

const limits = { memoryBytes: 1000, processes: 7 }

/** Makes a folder that stands for a group. Its files are those that a kernel would read. */
function folder(...names: string[]): string {
  const path = join(root, ...names)
  mkdirSync(path, { recursive: true })
  return path
}

const groupIn = (path: string) =>
  readdirSync(path).find((name) => name.startsWith(ownName('aworld-train-sandbox-')) && !name.includes('trial'))!

const mountOf = (type: string, point: string, options: string, from = '/') =>
  `30 24 0:26 ${from} ${point} rw,nosuid - ${type} ${type} ${options}\n`

test('in version 2 a group is made in the nearest one above that hands on both controllers', () => {
  const slice = folder('v2', 'user.slice')
  // The group holds processes, so the kernel refuses to hand controllers on below it. A folder stands here where the file would be written.
  folder('v2', 'user.slice', 'session.scope', 'cgroup.subtree_control')
  writeFileSync(join(slice, 'cgroup.subtree_control'), 'cpu memory pids\n')
  const cgroups = findCgroups('0::/user.slice/session.scope\n', mountOf('cgroup2', join(root, 'v2'), 'rw'))
  expect([...cgroups.controllers]).toEqual(['memory', 'pids'])
  cgroups.create(limits).add(42)
  const group = join(slice, groupIn(slice))
  expect(['memory.max', 'memory.swap.max', 'pids.max', 'cgroup.procs'].map((file) => readFileSync(join(group, file), 'utf8'))).toEqual([
    '1000',
    '0',
    '7',
    '42',
  ])
})

test('in version 1 each controller has a group of its own, below that of this process', () => {
  const memory = folder('memory', 'job')
  const pids = folder('pids')
  const cgroups = findCgroups(
    '8:pids:/\n4:memory:/job\n0::/\n',
    mountOf('cgroup', join(root, 'memory'), 'rw,memory') + mountOf('cgroup', pids, 'rw,pids'),
  )
  cgroups.create(limits).add(42)
  const group = groupIn(pids)
  expect(readFileSync(join(memory, group, 'memory.limit_in_bytes'), 'utf8')).toBe('1000')
  // Network buffers are no part of it there.
  expect(readFileSync(join(memory, group, 'memory.kmem.tcp.limit_in_bytes'), 'utf8')).toBe(String(64 * 2 ** 20))
  expect(readFileSync(join(pids, group, 'pids.max'), 'utf8')).toBe('7')
  expect([memory, pids].map((path) => readFileSync(join(path, group, 'cgroup.procs'), 'utf8'))).toEqual(['42', '42'])
})

test('groups that killed processes left are removed, those of running ones stay', () => {
  const { pid: ended } = spawnSync(process.execPath, ['-e', ''])
  const left = ownName('aworld-train-sandbox-').replace(String(process.pid), String(ended))
  const running = ownName('aworld-train-sandbox-').replace(String(process.pid), String(process.ppid))
  const groups = [left, running].map((name) => folder('pids', `${name}-3`))
  findCgroups('8:pids:/\n', mountOf('cgroup', join(root, 'pids'), 'rw,pids'))
  expect(groups.map((path) => existsSync(path))).toEqual([false, true])
})

test('without a mount that may be written nothing is bounded, and nothing fails', async () => {
  const cgroups = findCgroups('8:pids:/\n0::/\n', mountOf('cgroup2', join(root, 'nowhere'), 'ro'))
  expect([...cgroups.controllers]).toEqual([])
  const group = cgroups.create(limits)
  group.add(42)
  await group.remove()
})
