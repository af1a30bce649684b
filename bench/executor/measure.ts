import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { cpuOf } from '../gateway/process-tree.ts'

/** How a process did its work, and how busy the machine was meanwhile. */
export interface Measured {
  readonly seconds: number
  /** CPU of this process and its children. */
  readonly cpuSeconds: number
  /** Milliseconds by which timers of this process came late. */
  readonly delayP99: number
  /** Part of all cores that was busy, whoever used it. */
  readonly machineBusy: number
}

export async function measure<Result>(work: () => Promise<Result>): Promise<readonly [Result, Measured]> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const machine = machineTicks()
  const cpu = cpuOf(process.pid).tree
  const startedAt = performance.now()
  const result = await work()
  const seconds = (performance.now() - startedAt) / 1000
  const after = machineTicks()
  return [
    result,
    {
      seconds,
      cpuSeconds: (cpuOf(process.pid).tree - cpu) / 1000,
      delayP99: delay.percentile(99) / 1e6,
      machineBusy: 1 - (after.idle - machine.idle) / (after.all - machine.all),
    },
  ]
}

/** The first line of https://man7.org/linux/man-pages/man5/proc_stat.5.html: user, nice, system, idle, iowait, … */
function machineTicks() {
  const [, ...fields] = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]!.trim().split(/\s+/).map(Number)
  return { all: fields.slice(0, 8).reduce((sum, each) => sum + each, 0), idle: fields[3]! + fields[4]! }
}
