import { Worker } from 'node:worker_threads'
import { siblingModule, TrainError } from '@aworld-train/core'
import type { EncodedTurn } from './encoded-writes.ts'
import type { RunWriter } from './local-writer.ts'
import type { ThreadCall, ThreadMethod, ThreadOptions, ThreadReply } from './thread-messages.ts'

interface Pending {
  resolve(value: unknown): void
  reject(error: Error): void
}

/** Starts a thread that opens the run at `path` and writes it. Rejects with the thread's error if it cannot open the run. */
export async function startThreadWriter(options: ThreadOptions): Promise<RunWriter> {
  const worker = new Worker(siblingModule('writer-thread', import.meta.url), { name: 'aworld-train-store', workerData: options })
  const pending = new Map<number, Pending>()
  let batch: { readonly calls: ThreadCall[]; readonly moved: ArrayBuffer[] } | null = null
  let calls = 0
  let ended: TrainError | null = null
  let cause: unknown

  worker.on('message', (replies: readonly ThreadReply[]) => {
    for (const reply of replies) {
      const call = pending.get(reply.id)
      pending.delete(reply.id)
      if (!('error' in reply)) call?.resolve(reply.value)
      else {
        const { code, message, details } = reply.error
        call?.reject(code === null ? new Error(message) : new TrainError(code, message, { details }))
      }
    }
    if (pending.size === 0) worker.unref()
  })
  worker.on('error', (error) => {
    cause = error
  })
  worker.on('exit', (code) => {
    ended = new TrainError('STORE_FAILED', `The thread that writes run ${options.path} ended with code ${code}.`, { cause })
    for (const { reject } of pending.values()) reject(ended)
    pending.clear()
  })

  function post(): void {
    if (batch) worker.postMessage(batch.calls, batch.moved)
    batch = null
  }

  /** Calls the thread. The bytes of `turns`, which are among the arguments, move to it. */
  function call<T>(method: ThreadMethod, args: readonly unknown[], turns: readonly EncodedTurn[] = []): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (ended) return reject(ended)
      if (pending.size === 0) worker.ref()
      const id = calls++
      pending.set(id, { resolve: resolve as (value: unknown) => void, reject })
      if (!batch) {
        batch = { calls: [], moved: [] }
        setImmediate(post)
      }
      batch.calls.push({ id, method, args })
      for (const { record } of turns) batch.moved.push(record.bytes.buffer)
    })
  }

  await call('open', [])
  return {
    writes: {
      queue: (request, at) => call('queue', [request, at]),
      keepSubmission: (request, at) => call('keepSubmission', [request, at]),
      releaseSubmission: (rollout, error) => call('releaseSubmission', [rollout, error]),
      begin: (request, at, before) => call('begin', [request, at, before]),
      appendTurn: (rollout, attempt, turn) => call('appendTurn', [rollout, attempt, turn], [turn]),
      finish: (episode, missing, worker) => call('finish', [episode, missing, worker], missing),
      keepScores: (scores) => call('keepScores', [scores]),
      cancel: (rollout, attempt, at) => call('cancel', [rollout, attempt, at]),
      takeBack: (rollouts) => call('takeBack', [rollouts]),
      discardStepsAfter: (step) => call('discardStepsAfter', [step]),
      commitStep: (step, samples) => call('commitStep', [step, samples]),
      setState: (key, value) => call('setState', [key, value]),
    },
    async close() {
      await call('close', [])
      await worker.terminate()
    },
  }
}
