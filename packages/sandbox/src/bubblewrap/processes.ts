import { readdirSync, readFileSync } from 'node:fs'

/** Processes that a process started and that have not ended; empty where it has ended itself. */
export function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
      const children = readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').trim()
      return children === '' ? [] : children.split(' ').map(Number)
    })
  } catch {
    return []
  }
}

/** All below a process; `skip` and what is below those is left out. */
export function descendantsOf(pid: number, skip: ReadonlySet<number> = new Set()): number[] {
  return childrenOf(pid).flatMap((child) => (skip.has(child) ? [] : [child, ...descendantsOf(child, skip)]))
}

/** Sends a signal; a process that has ended is none to miss. */
export function signalTo(pid: number, signal: NodeJS.Signals | number): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}
