// @module-tag quick
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { expect, onTestFinished, test, vi } from 'vitest'
import { sleepersOf, sleepTime } from './processes.ts'

const holder = fileURLToPath(new URL('killed-holder.ts', import.meta.url))

/** Entries that carry the id of a process: folders below the temporary one, and control groups. */
function leftBy(pid: number): string[] {
  const groups = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(' - cgroup'))
    .map((line) => line.split(' ')[4]!)
  const ownGroups = readFileSync('/proc/self/cgroup', 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(':')[2]!)
  const folders = [tmpdir(), ...groups, ...groups.flatMap((group) => ownGroups.map((path) => join(group, path)))]
  const found = folders
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder).filter((name) => name.startsWith('aworld-train-sandbox-') && name.includes(`-${pid}-`)))
  return [...new Set(found)]
}

test('of a killed process no jail is left at once, and no folder or group after the next start', async () => {
  const child = spawn(process.execPath, [holder, sleepTime(1)], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  await new Promise((resolve) => child.stdout.once('data', resolve))
  await vi.waitUntil(() => sleepersOf(sleepTime(1)).length === 3, { timeout: 60_000 })
  expect(leftBy(child.pid!)).not.toEqual([])
  child.kill('SIGKILL')
  await vi.waitUntil(() => sleepersOf(sleepTime(1)).length === 0, { timeout: 60_000 })
  expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(' /workspace ')
  const sandbox = await openSandbox({ tier: 'bubblewrap' })
  await sandbox.close()
  expect(leftBy(child.pid!)).toEqual([])
})
