import { Worker } from 'node:worker_threads'

/** Threads that have loaded the simulation, which takes half a second of a core. */
export interface WorkspaceThreads {
  /** A thread without a workspace: one that waits, or a new one. */
  take(memoryBytes: number): Worker
  /** Keeps a thread for another workspace, which begins with nothing of the one before. */
  giveBack(thread: Worker, memoryBytes: number): void
  close(): Promise<void>
}

/** Threads that wait: more would be memory that a later workspace may never ask for. */
const maxWaiting = 32

/**
 * A thread that outgrows its memory ends alone, where it comes to the bound in small steps: one text of 64 MB, the longest of the simulation,
 * in a bound of 128 MB ended this process.
 */
const leastMemoryMb = 256

export function createWorkspaceThreads(): WorkspaceThreads {
  let waiting: { readonly thread: Worker; readonly memoryBytes: number }[] = []
  let closed = false
  return {
    take(memoryBytes) {
      const index = waiting.findIndex((each) => each.memoryBytes === memoryBytes)
      if (index >= 0) return waiting.splice(index, 1)[0]!.thread
      const thread = startThread(memoryBytes)
      thread.once('exit', () => {
        waiting = waiting.filter((each) => each.thread !== thread)
      })
      return thread
    },
    giveBack(thread, memoryBytes) {
      if (closed || waiting.length >= maxWaiting) void thread.terminate()
      else waiting.push({ thread, memoryBytes })
    },
    async close() {
      closed = true
      await Promise.all(waiting.splice(0).map(({ thread }) => thread.terminate()))
    },
  }
}

function startThread(memoryBytes: number): Worker {
  const isSource = import.meta.url.endsWith('.ts')
  return new Worker(new URL(isSource ? './workspace-thread.ts' : './workspace-thread.js', import.meta.url), {
    name: 'aworld-train-workspace',
    env: {},
    // Without an environment there is no NODE_OPTIONS to say how sources that are not built import each other. Options of this process
    // are not passed on: a thread refuses some, such as those that `node --test` gives its children.
    execArgv: [...(isSource ? ['--conditions=@aworld-train/source'] : []), '--disable-warning=ExperimentalWarning'],
    resourceLimits: { maxOldGenerationSizeMb: Math.max(leastMemoryMb, Math.ceil(memoryBytes / 2 ** 20)) },
  })
}
