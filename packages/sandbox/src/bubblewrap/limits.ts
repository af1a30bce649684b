import type { WorkspaceLimits } from '@aworld-train/core'

const MiB = 1024 * 1024

export const defaultLimits: WorkspaceLimits = {
  memoryBytes: 1024 * MiB,
  diskBytes: 256 * MiB,
  processes: 128,
  cpuSeconds: 60,
  outputBytes: 64 * 1024,
}

/** Files that a process may have open. */
const openFiles = 512

/** Node makes so much of its address space writable for code, most of which it never touches. */
const nodeCodeBytes = 512 * MiB

/**
 * Limits of each process, as commands of a POSIX shell. Address space is not bounded: Node and WebAssembly reserve more of it than they
 * use. Where no control group counts memory, private writable memory is bounded instead (RLIMIT_DATA), so that none can outrun a look at it.
 */
export function processLimits(
  { memoryBytes, cpuSeconds }: Pick<WorkspaceLimits, 'memoryBytes'> & { readonly cpuSeconds?: number | undefined },
  memoryIsCounted: boolean,
): string {
  // A second before the kernel ends a process without a word, it sends SIGXCPU, whose reason bash prints.
  const cpu = cpuSeconds === undefined ? '' : `ulimit -St ${Math.ceil(cpuSeconds)}; ulimit -Ht ${Math.ceil(cpuSeconds) + 1}; `
  const data = memoryIsCounted ? '' : `ulimit -d ${Math.ceil((memoryBytes + nodeCodeBytes) / 1024)}; `
  return `ulimit -c 0; ulimit -n ${openFiles}; ${cpu}${data}`
}
