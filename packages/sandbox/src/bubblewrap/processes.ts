import type { ChildProcess } from 'node:child_process'
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

/**
 * Ends a child process and all below it. Those of bubblewrap that are ended one by one while they start leave a child that waits for ever, so
 * every one is stopped first: a stopped process starts no other.
 */
export function endTree(child: ChildProcess): void {
  const { pid, exitCode, signalCode } = child
  // The id of one that has ended may be another's by then.
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  const stopped = new Set<number>()
  for (let running = [pid]; running.length > 0; running = descendantsOf(pid).filter((each) => !stopped.has(each))) {
    for (const each of running) {
      signalTo(each, 'SIGSTOP')
      stopped.add(each)
    }
  }
  for (const each of stopped) signalTo(each, 'SIGKILL')
}

/** Sends a signal; a process that has ended is none to miss. */
export function signalTo(pid: number, signal: NodeJS.Signals | number): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}
