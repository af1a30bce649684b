import { readdirSync, readFileSync } from 'node:fs'
import { signalTo } from './processes.ts'

const intervalMs = 100

/** Memory that the buffers of a socket can hold, in bytes: the kernel's default, and `tcpBufferBytes` in both directions. */
const socketBytes = 212_992

/** Limits the memory of a workspace if no control group does so. It ends the largest of its programs until the others fit. */
export interface MemoryWatch {
  /** Watches until the work has settled and nothing runs in the background. */
  during<Value>(work: Promise<Value>): Promise<Value>
}

export interface MemoryWatchOptions {
  readonly processes: () => readonly number[]
  /** May change while it watches. */
  readonly limitBytes: () => number
  /** Whether processes run that no work waits for. */
  readonly hasBackground?: () => boolean
  /** A process of the network namespace whose sockets are counted too, each as if its buffers were full. */
  readonly network?: number
}

export function createMemoryWatch({ processes, limitBytes, hasBackground = () => false, network }: MemoryWatchOptions): MemoryWatch {
  let works = 0
  let timer: NodeJS.Timeout | undefined

  function look(): void {
    if (works === 0 && !hasBackground()) {
      clearInterval(timer)
      timer = undefined
      return
    }
    const sizes = processes().map((pid) => ({ pid, bytes: memoryOf(pid) }))
    const inSockets = network === undefined ? 0 : socketsOf(network) * socketBytes
    let excess = sizes.reduce((sum, { bytes }) => sum + bytes, inSockets) - limitBytes()
    if (excess <= 0) return
    const whole = sizes.map(({ pid, bytes }) => ({ pid, bytes: bytes + (inSockets === 0 ? 0 : openFilesOf(pid) * socketBytes) }))
    for (const { pid, bytes } of whole.sort((one, other) => other.bytes - one.bytes)) {
      if (excess <= 0) break
      signalTo(pid, 'SIGKILL')
      excess -= bytes
    }
  }

  return {
    async during(work) {
      works++
      timer ??= setInterval(look, intervalMs).unref()
      try {
        return await work
      } finally {
        works--
      }
    },
  }
}

/** Private and shared memory of a process in bytes, without code and files of the machine. */
function memoryOf(pid: number): number {
  const lines = read(`/proc/${pid}/status`).matchAll(/^(?:RssAnon|RssShmem|VmPTE|VmSwap):\s+(\d+) kB/gm)
  return [...lines].reduce((sum, [, kilobytes]) => sum + Number(kilobytes) * 1024, 0)
}

/** Sockets of the network namespace of a process. */
const socketsOf = (pid: number) => Number(/^sockets: used (\d+)/.exec(read(`/proc/${pid}/net/sockstat`))?.[1] ?? 0)

function openFilesOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return 0
  }
}

/** A file of /proc; empty if its process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
