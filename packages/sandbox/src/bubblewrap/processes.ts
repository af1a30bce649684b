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

/** How long a process may take to stop. One that makes namespaces takes some milliseconds; more is a kernel that is stuck. */
const stopDeadlineMs = 500

/**
 * Ends a child process and all below it. Those of bubblewrap that are ended one by one while they start leave a child that waits for ever, so
 * every one is stopped first: a stopped process starts no other. One that is just starting another stops once that stands.
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
    const deadline = performance.now() + stopDeadlineMs
    while (!running.every(hasStopped) && performance.now() < deadline);
  }
  for (const each of stopped) signalTo(each, 'SIGKILL')
}

/** Whether no thread of a process runs any more. */
function hasStopped(pid: number): boolean {
  try {
    // The state stands behind the name, which may hold any character (proc_pid_stat(5)).
    return readdirSync(`/proc/${pid}/task`).every((thread) =>
      /^ [tTZX] /.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8').split(')').at(-1)!),
    )
  } catch {
    return true
  }
}

/** Sends a signal; a process that has ended is none to miss. */
export function signalTo(pid: number, signal: NodeJS.Signals | number): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}
