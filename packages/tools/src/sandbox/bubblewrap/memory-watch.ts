import { readFileSync } from 'node:fs'
import { signalTo } from './processes.ts'

const intervalMs = 100

/** Limits the memory of a workspace if no control group does so. It ends the largest of its programs, as the kernel would. */
export interface MemoryWatch {
  /** Watches until the work has settled. */
  during<Value>(work: Promise<Value>): Promise<Value>
}

export function createMemoryWatch(processes: () => readonly number[], limitBytes: number): MemoryWatch {
  let works = 0
  let timer: NodeJS.Timeout | undefined

  function look(): void {
    const sizes = processes().map((pid) => ({ pid, bytes: memoryOf(pid) }))
    if (sizes.reduce((sum, { bytes }) => sum + bytes, 0) <= limitBytes) return
    const largest = sizes.reduce((one, other) => (other.bytes > one.bytes ? other : one))
    signalTo(largest.pid, 'SIGKILL')
  }

  return {
    async during(work) {
      works++
      timer ??= setInterval(look, intervalMs)
      try {
        return await work
      } finally {
        if (--works === 0) {
          clearInterval(timer)
          timer = undefined
        }
      }
    },
  }
}

/** Private and shared memory of a process in bytes, without code and files of the machine. */
function memoryOf(pid: number): number {
  try {
    const lines = readFileSync(`/proc/${pid}/status`, 'utf8').matchAll(/^Rss(?:Anon|Shmem):\s+(\d+) kB/gm)
    return [...lines].reduce((sum, [, kilobytes]) => sum + Number(kilobytes) * 1024, 0)
  } catch {
    // It has ended.
    return 0
  }
}
