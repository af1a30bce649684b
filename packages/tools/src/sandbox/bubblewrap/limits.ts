import type { WorkspaceLimits } from '@aworld-train/core'

const MiB = 1024 * 1024

export const defaultLimits: WorkspaceLimits = {
  memoryBytes: 1024 * MiB,
  diskBytes: 256 * MiB,
  processes: 128,
  cpuSeconds: 60,
  outputBytes: 64 * 1024,
}

/** Most files that a process may have open. */
const openFiles = 512

/** Node makes this much of its address space writable for code, most of which it never touches. */
const nodeCodeBytes = 512 * MiB

/**
 * Limits of each process, as commands of a POSIX shell. Address space is not limited, because Node and WebAssembly reserve more of
 * it than they use. If no control group counts memory, private writable memory is limited instead (RLIMIT_DATA), so that no
 * process can outrun the memory watch.
 */
export function processLimits(
  { memoryBytes, cpuSeconds }: Pick<WorkspaceLimits, 'memoryBytes'> & { readonly cpuSeconds?: number | undefined },
  memoryIsCounted: boolean,
): string {
  // One second before the kernel silently ends a process, it sends SIGXCPU, whose reason bash prints.
  const cpu = cpuSeconds === undefined ? '' : `ulimit -St ${Math.ceil(cpuSeconds)}; ulimit -Ht ${Math.ceil(cpuSeconds) + 1}; `
  const data = memoryIsCounted ? '' : `ulimit -d ${Math.ceil((memoryBytes + nodeCodeBytes) / 1024)}; `
  return `ulimit -c 0; ulimit -n ${openFiles}; ${cpu}${data}`
}
