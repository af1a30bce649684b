import { expect, test } from 'vitest'
import type { GroupLimits } from './cgroups.ts'
import type { JailRequest } from './jails.ts'
import { defaultLimits, graphicalMemoryBytes, graphicalProcesses } from './limits.ts'
import { createLongPrograms } from './long-programs.ts'

const signal = new AbortController().signal

/** Programs of a machine on which no jail starts. */
function setUp() {
  const allowed: Partial<GroupLimits>[] = []
  const requests: JailRequest[] = []
  const cgroup = { add() {}, allow: (more: Partial<GroupLimits>) => void allowed.push(more), async remove() {} }
  const open = async (request: JailRequest = {}) => {
    requests.push(request)
    throw new Error('no jail')
  }
  return { programs: createLongPrograms({ cgroup, limits: defaultLimits }, { open }, () => {}), allowed, requests }
}

test('a program that does not start gives its place among the processes of the workspace back', async () => {
  const { programs, allowed } = setUp()
  await expect(programs.start({ command: ['sleep', '9'], profile: 'command' }, signal)).rejects.toThrow('no jail')
  expect(allowed).toEqual([{ processes: defaultLimits.processes }, { processes: -defaultLimits.processes }])
})

test('graphical programs share what the first of them brings, and have a home of their own', async () => {
  const { programs, allowed, requests } = setUp()
  expect(programs.memoryBytes()).toBe(0)
  for (const NAME of ['one', 'two'])
    await expect(programs.start({ command: ['true'], profile: 'graphical', env: { NAME } }, signal)).rejects.toThrow('no jail')
  expect(allowed).toEqual([{ processes: graphicalProcesses, memoryBytes: graphicalMemoryBytes }])
  expect(programs.memoryBytes()).toBe(graphicalMemoryBytes)
  expect(requests[1]).toMatchObject({ profile: 'graphical', env: { HOME: '/dev/shm', NAME: 'two' } })
})

test('a NUL character is refused before anything starts', async () => {
  const { programs, allowed, requests } = setUp()
  await expect(programs.start({ command: ['echo', 'a\0b'], profile: 'command' }, signal)).rejects.toThrow('NUL')
  expect([allowed, requests]).toEqual([[], []])
})
