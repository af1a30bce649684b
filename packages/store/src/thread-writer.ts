import { type MessagePort, Worker } from 'node:worker_threads'
import { TrainError } from '@aworld-train/protocol'
import { encodeEpisode, missingTurns } from './encode-episode.ts'
import type { RunWrites } from './run-writes.ts'
import type { ThreadCall, ThreadMethod, ThreadOptions, ThreadReply } from './writer-protocol.ts'

/** The writer of a run in a thread of its own. */
export interface ThreadWriter {
  readonly writes: RunWrites
  /** The port is answered there until its other end closes. */
  serve(port: MessagePort): void
  close(): Promise<void>
}

interface Pending {
  resolve(value: unknown): void
  reject(error: Error): void
}

/** Starts the thread, which opens the run at `path`; rejects with what that rejects with. */
export async function startThreadWriter(options: ThreadOptions): Promise<ThreadWriter> {
  const file = import.meta.url.endsWith('.ts') ? './writer-thread.ts' : './writer-thread.js'
  const worker = new Worker(new URL(file, import.meta.url), { name: 'aworld-train-store', workerData: options })
  const pending = new Map<number, Pending>()
  let calls = 0
  let ended: TrainError | null = null
  let cause: unknown

  worker.on('message', (reply: ThreadReply) => {
    const call = pending.get(reply.id)
    pending.delete(reply.id)
    if (pending.size === 0) worker.unref()
    if (!('error' in reply)) return call?.resolve(reply.value)
    const { code, message, details } = reply.error
    call?.reject(code === null ? new Error(message) : new TrainError(code, message, { details }))
  })
  worker.on('error', (error) => {
    cause = error
  })
  worker.on('exit', (code) => {
    ended = new TrainError('STORE_FAILED', `The thread that writes run ${options.path} ended with code ${code}.`, { cause })
    for (const { reject } of pending.values()) reject(ended)
    pending.clear()
  })

  function call<T>(method: ThreadMethod, args: readonly unknown[], transfer: readonly MessagePort[] = []): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (ended) return reject(ended)
      if (pending.size === 0) worker.ref()
      const id = calls++
      pending.set(id, { resolve: resolve as (value: unknown) => void, reject })
      worker.postMessage({ id, method, args } satisfies ThreadCall, transfer)
    })
  }

  await call('open', [])
  return {
    writes: {
      begin: (request) => call('begin', [request]),
      appendTurn: (rollout, attempt, agent, turn) => call('appendTurn', [rollout, attempt, agent, turn]),
      async finish(episode) {
        const encoded = encodeEpisode(episode)
        const missing = await call<(typeof encoded)['turns']>('finish', [encoded, null])
        if (missing.length > 0) await call('finish', [encoded, missingTurns(episode, missing)])
      },
      commitStep: (step) => call('commitStep', [step]),
      setState: (key, value) => call('setState', [key, value]),
    },
    serve(port) {
      call('serve', [port], [port]).catch(() => port.close())
    },
    async close() {
      await call('close', [])
      await worker.terminate()
    },
  }
}
