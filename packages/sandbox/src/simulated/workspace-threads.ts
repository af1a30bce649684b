import { Worker } from 'node:worker_threads'

/** Threads that have loaded the simulation, which takes half a second of a core. */
export interface WorkspaceThreads {
  /** A thread without a workspace: one that waits, or a new one. */
  take(memoryBytes: number): Worker
  /** Keeps a thread for another workspace, which begins with nothing of the one before. */
  giveBack(thread: Worker, memoryBytes: number): void
  close(): Promise<void>
}

/** Threads that wait, and how long: each is memory that a later workspace may never ask for. */
const maxWaiting = 32
const waitMs = 30_000

/**
 * A thread that outgrows its memory ends alone, where it comes to the bound in small steps: one text of 64 MB, the longest of the simulation,
 * in a bound of 128 MB ended this process.
 */
const leastMemoryMb = 256

export function createWorkspaceThreads(): WorkspaceThreads {
  let waiting: { readonly thread: Worker; readonly memoryBytes: number; readonly timer: NodeJS.Timeout }[] = []
  let closed = false

  /** No longer waits; false where it did not. */
  function remove(thread: Worker): boolean {
    const found = waiting.find((each) => each.thread === thread)
    clearTimeout(found?.timer)
    waiting = waiting.filter((each) => each !== found)
    return found !== undefined
  }

  return {
    take(memoryBytes) {
      // The last that came back, so that others are ended where few are needed.
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
    // Options of this process are not passed on: a thread refuses some, such as those that `node --test` gives its children.
    execArgv: ['--disable-warning=ExperimentalWarning'],
    resourceLimits: { maxOldGenerationSizeMb: Math.max(leastMemoryMb, Math.ceil(memoryBytes / 2 ** 20)) },
  })
}
