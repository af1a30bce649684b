import { Worker } from 'node:worker_threads'
import { createFairQueue, siblingModule, TrainError } from '@aworld-train/core'
import type { TokenizerSource } from './tokenizer.ts'

export interface EncodeRequest {
  readonly tokenizer: TokenizerSource
  readonly texts: readonly string[]
  /** Owner of the texts, such as a session. Owners take turns. */
  readonly owner: object
  /** Aborts the wait. Texts that nobody else waits for are then not encoded. */
  readonly signal?: AbortSignal | undefined
}

/** Encodes texts in a thread of its own, which starts with the first text and again if it has ended. */
export interface Encoder extends AsyncDisposable {
  /**
   * Returns the ids of each text, however long that takes. Rejects with the signal's reason, with GATEWAY_OVERLOADED if the thread ended
   * twice over the texts, or with GATEWAY_FAILED if the tokenizer threw.
   */
  encode(request: EncodeRequest): Promise<readonly Int32Array[]>
  /** Ends the thread. Waiting callers are rejected with GATEWAY_OVERLOADED. */
  close(): Promise<void>
}

export type EncoderRequest =
  | { readonly kind: 'tokenizer'; readonly source: TokenizerSource }
  | { readonly kind: 'texts'; readonly hash: string; readonly texts: readonly string[] }

/** The answer to one job; jobs are answered one after another. */
export type EncoderReply = { readonly ids: readonly Int32Array[] } | { readonly error: string }

interface Waiter extends PromiseWithResolvers<readonly Int32Array[]> {
  readonly job: Job
  readonly owner: object
}

/** Texts that are encoded once for all callers that wait for the same ones. */
interface Job {
  readonly key: string
  readonly tokenizer: TokenizerSource
  readonly texts: readonly string[]
  readonly waiters: Set<Waiter>
  /** How often the thread ended while it encoded them. */
  deaths: number
}

interface RunningThread {
  readonly worker: Worker
  /** Hashes of the tokenizers that the thread has loaded. */
  readonly tokenizers: Set<string>
  /** The uncaught error that ended it. */
  error: unknown
}

/** Creates an encoder. */
export function createEncoder(): Encoder {
  const queue = createFairQueue<Waiter>()
  const jobs = new Map<string, Job>()
  let running: Job | null = null
  let thread: RunningThread | null = null
  let closed = false

  function start(): RunningThread {
    const worker = new Worker(siblingModule('encoder-thread', import.meta.url), { name: 'aworld-train-encoder' })
    const started: RunningThread = { worker, tokenizers: new Set(), error: undefined }
    worker.on('message', (reply: EncoderReply) => {
      if ('ids' in reply) settle((waiter) => waiter.resolve(reply.ids))
      else settle((waiter) => waiter.reject(new TrainError('GATEWAY_FAILED', `The tokenizer cannot encode a prompt: ${reply.error}`)))
    })
    worker.on('error', (error) => {
      started.error = error
    })
    worker.on('exit', () => {
      thread = null
      if (closed || !running) return
      running.deaths += 1
      if (running.deaths === 1 && running.waiters.size > 0) post(running)
      else settle(({ reject }) => reject(ended(started.error)))
    })
    worker.unref()
    return started
  }

  function post({ tokenizer: source, texts }: Job): void {
    thread ??= start()
    const send = (request: EncoderRequest) => thread?.worker.postMessage(request)
    const { hash } = source
    if (!thread.tokenizers.has(hash)) {
      thread.tokenizers.add(hash)
      send({ kind: 'tokenizer', source })
    }
    send({ kind: 'texts', hash, texts })
  }

  /** Hands the thread the next job. It gets one at a time, so that waiting jobs can still be dropped and take turns. */
  function runNext(): void {
    if (running) return
    running = queue.next()?.job ?? null
    if (!running) return
    for (const waiter of running.waiters) queue.remove(waiter.owner, waiter)
    post(running)
  }

  function settle(end: (waiter: Waiter) => void): void {
    const job = running
    if (!job) return
    running = null
    jobs.delete(job.key)
    for (const waiter of job.waiters) end(waiter)
    runNext()
  }

  function forget(waiter: Waiter): void {
    const { job, owner } = waiter
    job.waiters.delete(waiter)
    queue.remove(owner, waiter)
    if (job.waiters.size === 0 && job !== running) jobs.delete(job.key)
  }

  const encoder: Encoder = {
    async encode({ tokenizer, texts, owner, signal }) {
      signal?.throwIfAborted()
      if (closed) throw closedError()
      const key = [tokenizer.hash, ...texts.map(({ length }) => length), ...texts].join('\n')
      const job = jobs.get(key) ?? { key, tokenizer, texts, waiters: new Set<Waiter>(), deaths: 0 }
      jobs.set(key, job)
      const waiter: Waiter = { job, owner, ...Promise.withResolvers<readonly Int32Array[]>() }
      job.waiters.add(waiter)
      if (job !== running) queue.add(owner, waiter)
      const leave = () => {
        forget(waiter)
        waiter.reject(signal?.reason)
      }
      signal?.addEventListener('abort', leave, { once: true })
      runNext()
      try {
        return await waiter.promise
      } finally {
        signal?.removeEventListener('abort', leave)
      }
    },
    async close() {
      closed = true
      for (const { waiters } of jobs.values()) for (const waiter of waiters) waiter.reject(closedError())
      await thread?.worker.terminate()
    },
    [Symbol.asyncDispose]: () => encoder.close(),
  }
  return encoder
}

function ended(cause: unknown): TrainError {
  const why = cause instanceof Error ? `: ${cause.message}` : ''
  const message = `The thread that encodes prompts ended twice over this one${why}; send the request again, or make it shorter.`
  return new TrainError('GATEWAY_OVERLOADED', message, { cause })
}

const closedError = () =>
  new TrainError('GATEWAY_OVERLOADED', 'The gateway has closed, and encodes nothing more; send the request to another.')
