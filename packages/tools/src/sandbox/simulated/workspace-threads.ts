import { Worker } from 'node:worker_threads'

/** Threads that have loaded the simulation, which takes half a second of a core. */
export interface WorkspaceThreads {
  /** Takes a thread without a workspace, a waiting one or a new one. */
  take(memoryBytes: number): Worker
  /** Keeps a thread for another workspace, which takes over nothing of the one before. */
  giveBack(thread: Worker, memoryBytes: number): void
  close(): Promise<void>
}

/** Most threads that wait, and how long they do. Each takes memory that a later workspace may never ask for. */
const maxWaiting = 32
const waitMs = 30_000

/**
 * A thread that outgrows its memory ends alone if it reaches the limit in small steps. One text of 64 MB, the longest of the simulation,
 * ended this process at a limit of 128 MB.
 */
const leastMemoryMb = 256

export function createWorkspaceThreads(): WorkspaceThreads {
  let waiting: { readonly thread: Worker; readonly memoryBytes: number; readonly timer: NodeJS.Timeout }[] = []
  let closed = false

  /** Takes a thread from the waiting ones; false if it was not among them. */
  function remove(thread: Worker): boolean {
    const found = waiting.find((each) => each.thread === thread)
    clearTimeout(found?.timer)
    waiting = waiting.filter((each) => each !== found)
    return found !== undefined
  }

  return {
    take(memoryBytes) {
      // The last one that came back is taken, so that others end when few are needed.
      const found = waiting.findLast((each) => each.memoryBytes === memoryBytes)?.thread
      if (found && remove(found)) return found
      const thread = startThread(memoryBytes)
      thread.once('exit', () => remove(thread))
      return thread
    },
    giveBack(thread, memoryBytes) {
      if (closed || waiting.length >= maxWaiting) void thread.terminate()
      else waiting.push({ thread, memoryBytes, timer: setTimeout(() => remove(thread) && thread.terminate(), waitMs).unref() })
    },
    async close() {
      closed = true
      await Promise.all(waiting.map(({ thread }) => remove(thread) && thread.terminate()))
    },
  }
}

function startThread(memoryBytes: number): Worker {
  const isSource = import.meta.url.endsWith('.ts')
  return new Worker(new URL(isSource ? './workspace-thread.ts' : './workspace-thread.js', import.meta.url), {
    name: 'aworld-train-workspace',
    env: {},
    // Options of this process are not passed on. A thread refuses some, such as those that `node --test` gives its children.
    execArgv: ['--disable-warning=ExperimentalWarning'],
    resourceLimits: { maxOldGenerationSizeMb: Math.max(leastMemoryMb, Math.ceil(memoryBytes / 2 ** 20)) },
  })
}
