import type { ProgramProfile, WorkspaceLimits } from '@aworld-train/core'

const MiB = 1024 * 1024

export const defaultLimits: WorkspaceLimits = {
  memoryBytes: 1024 * MiB,
  diskBytes: 256 * MiB,
  processes: 128,
  cpuSeconds: 60,
  outputBytes: 64 * 1024,
}

/** Most files that a process may have open. */
const openFiles: Readonly<Record<ProgramProfile, number>> = { command: 512, graphical: 4_096 }

/** Processes and threads that all programs of the profile `graphical` may have. A page of Chromium takes some sixty. */
export const graphicalProcesses = 1_024

/** Memory that all programs of the profile `graphical` may take beside that of the workspace. An empty page of Chromium takes some 360 MB. */
export const graphicalMemoryBytes = 1024 * MiB

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
  profile: ProgramProfile = 'command',
): string {
  // One second before the kernel silently ends a process, it sends SIGXCPU, whose reason bash prints.
  const cpu = cpuSeconds === undefined ? '' : `ulimit -St ${Math.ceil(cpuSeconds)}; ulimit -Ht ${Math.ceil(cpuSeconds) + 1}; `
  const data = memoryIsCounted ? '' : `ulimit -d ${Math.ceil((memoryBytes + nodeCodeBytes) / 1024)}; `
  return `ulimit -c 0; ulimit -n ${openFiles[profile]}; ${cpu}${data}`
}
