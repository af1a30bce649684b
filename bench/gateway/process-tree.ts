import { readFileSync } from 'node:fs'

/** Milliseconds of CPU, user and system, since a process began. */
export interface CpuTimes {
  /** Of the whole process tree. */
  readonly tree: number
  /** Of the first thread of the process: in Node, its event loop. */
  readonly eventLoop: number
}

const millisecondsPerTick = 10

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** `pid` and all that descend from it. */
export function processTree(pid: number): number[] {
  const tree = [pid]
  for (const each of tree) {
    for (const children of read(`/proc/${each}/task/${each}/children`).trim().split(' ')) if (children !== '') tree.push(Number(children))
  }
  return tree
}

/** Fields 14 and 15 of `stat`: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
function ticks(path: string): number {
  const stat = read(path)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return stat === '' ? 0 : Number(fields[11]) + Number(fields[12])
}

export function cpuOf(pid: number): CpuTimes {
  const tree = processTree(pid).reduce((sum, each) => sum + ticks(`/proc/${each}/stat`), 0)
  return { tree: tree * millisecondsPerTick, eventLoop: ticks(`/proc/${pid}/task/${pid}/stat`) * millisecondsPerTick }
}

/** Resident memory of a process tree, in megabytes. */
export function residentMegabytes(pid: number): number {
  const kilobytes = (each: number) => Number(/VmRSS:\s+(\d+)/.exec(read(`/proc/${each}/status`))?.[1] ?? 0)
  return processTree(pid).reduce((sum, each) => sum + kilobytes(each), 0) / 1024
}
