import { MessageChannel } from 'node:worker_threads'
import type { TurnLog } from '@aworld-train/core'
import { createLocalWriter, type LocalWriterOptions } from './local-writer.ts'
import type { RunWrites } from './run-writes.ts'
import { startThreadWriter, type ThreadWriter } from './thread-writer.ts'

/** The one writer of a run: in this thread until another hands turns over itself, and in a thread of its own from then on. */
export interface RunWriter {
  readonly writes: RunWrites
  readonly turnLog: TurnLog
  close(): Promise<void>
}

export async function createRunWriter({ path, database, batchMs }: LocalWriterOptions): Promise<RunWriter> {
  const local = await createLocalWriter({ path, database, batchMs })
  let thread: Promise<ThreadWriter> | null = null

  /** What was written before is written when the thread opens the run. */
  async function handOver(): Promise<ThreadWriter> {
    await local.close()
    return startThreadWriter({ path, batchMs })
  }
  const now = <T>(write: (writes: RunWrites) => Promise<T>): Promise<T> =>
    thread ? thread.then(({ writes }) => write(writes)) : write(local.writes)

  return {
    writes: {
      begin: (request) => now(({ begin }) => begin(request)),
      appendTurn: (rollout, attempt, agent, turn) => now(({ appendTurn }) => appendTurn(rollout, attempt, agent, turn)),
      finish: (episode) => now(({ finish }) => finish(episode)),
      commitStep: (step) => now(({ commitStep }) => commitStep(step)),
      setState: (key, value) => now(({ setState }) => setState(key, value)),
    },
    turnLog: {
      connect() {
        const { port1, port2 } = new MessageChannel()
        thread ??= handOver()
        // A thread that does not start says so to each write, and its ports close.
        thread.then(
          ({ serve }) => serve(port2),
          () => port2.close(),
        )
        return port1
      },
    },
    async close() {
      if (!thread) return local.close()
      const started = await thread.catch(() => null)
      await started?.close()
    },
  }
}
