// @module-tag quick
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { sleepTime } from './processes.ts'

const starter = fileURLToPath(new URL('killed-starter.ts', import.meta.url))

/** Processes of these groups, and those that have the mark among their arguments. */
function leftOf(groups: ReadonlySet<number>, mark: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')
        const group = Number(readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ')[2])
        return groups.has(group) || command.includes(mark) ? [`${pid} ${command}`] : []
      } catch {
        // It has ended.
        return []
      }
    })
}

test('of a process that is killed while jails start, none of them is left', async () => {
  const mark = sleepTime(1)
  const groups = new Set<number>()
  for (let kills = 0; kills < 12; kills++) {
    const child = spawn(process.execPath, [starter, mark], { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
    groups.add(child.pid!)
    await new Promise((resolve) => child.stdout.once('data', resolve))
    await sleep(Math.random() * 60)
    child.kill('SIGKILL')
  }
  await expect.poll(() => leftOf(groups, mark)).toEqual([])
})
