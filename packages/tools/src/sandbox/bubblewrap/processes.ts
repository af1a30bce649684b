import type { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Running processes that a process started; none if it has ended itself. */
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

/** All processes below a process, without those in `skip` and below them. */
export function descendantsOf(pid: number, skip: ReadonlySet<number> = new Set()): number[] {
  return childrenOf(pid).flatMap((child) => (skip.has(child) ? [] : [child, ...descendantsOf(child, skip)]))
}

/** How long a process may take to stop. One that makes namespaces takes some milliseconds; a longer time means that the kernel is stuck. */
const stopDeadlineMs = 500

/**
 * Ends a child process and all below it. Processes of bubblewrap that are ended one by one while they start leave a child that
 * waits for ever. So every process is stopped first: a stopped process starts no other. A process that is just starting another
 * one stops once that one exists.
 */
export function endTree(child: ChildProcess): void {
  const { pid, exitCode, signalCode } = child
  // The id of an ended process may belong to another one by then.
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  for (const each of stopTrees([pid]).keys()) signalTo(each, 'SIGKILL')
}

/** Stops processes and all below them, and returns the function that lets those go on that ran. */
export function pauseTrees(pids: readonly number[]): () => void {
  const stopped = stopTrees(pids)
  return () => {
    for (const [pid, ran] of stopped) if (ran) signalTo(pid, 'SIGCONT')
  }
}

/** Stops processes and all below them. Returns them, with whether each ran before. */
function stopTrees(roots: readonly number[]): Map<number, boolean> {
  const stopped = new Map<number, boolean>()
  const left = () => roots.flatMap((pid) => [pid, ...descendantsOf(pid)]).filter((pid) => !stopped.has(pid))
  for (let running = left(); running.length > 0; running = left()) {
    for (const pid of running) {
      stopped.set(pid, !hasStopped(pid))
      signalTo(pid, 'SIGSTOP')
    }
    const deadline = performance.now() + stopDeadlineMs
    while (!running.every(hasStopped) && performance.now() < deadline);
  }
  return stopped
}

/** Whether no thread of a process runs any more. */
function hasStopped(pid: number): boolean {
  try {
    // The state comes after the name, which may contain any character (proc_pid_stat(5)).
    return readdirSync(`/proc/${pid}/task`).every((thread) =>
      /^ [tTZX] /.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8').split(')').at(-1)!),
    )
  } catch {
    return true
  }
}

/** Sends a signal. An ended process is no error. */
export function signalTo(pid: number, signal: NodeJS.Signals | number): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}
