import { Worker } from 'node:worker_threads'
import type { TokenizerSource } from './tokenizer.ts'

export interface RenderWorkerOptions {
  /** How long one text may take, waiting included, before its caller encodes it itself; 30 s by default. */
  readonly deadlineMs?: number | undefined
}

/** A thread that encodes long texts away from the event loop; it starts with the first of them. */
export interface RenderWorker extends AsyncDisposable {
  /** Ids of `text`; `null` where the thread did not answer in time or ended. Rejects with the signal's reason. */
  encode(tokenizer: TokenizerSource, text: string, signal?: AbortSignal): Promise<Int32Array | null>
  /** Pending texts are given back as `null`. */
  close(): Promise<void>
}

export type RenderWorkerRequest =
  | { readonly kind: 'tokenizer'; readonly hash: string; readonly tokenizerText: string; readonly config: object }
  | { readonly kind: 'encode'; readonly id: number; readonly hash: string; readonly text: string }

/** `ids` is `null` where the tokenizer failed on the text. */
export interface RenderWorkerReply {
  readonly id: number
  readonly ids: Int32Array | null
}

const defaultDeadlineMs = 30_000

interface RunningThread {
  readonly worker: Worker
  /** Hashes of the tokenizers that the thread has. */
  readonly tokenizers: Set<string>
}

/** One for a process; equal texts that wait are encoded once. */
export function createRenderWorker({ deadlineMs = defaultDeadlineMs }: RenderWorkerOptions = {}): RenderWorker {
  const pending = new Map<number, (ids: Int32Array | null) => void>()
  const running = new Map<string, Promise<Int32Array | null>>()
  let thread: RunningThread | null = null
  let nextId = 0
  let closed = false

  const giveBack = () => {
    for (const settle of [...pending.values()]) settle(null)
  }

  const start = (): RunningThread => {
    const file = import.meta.url.endsWith('.ts') ? './render-worker-thread.ts' : './render-worker-thread.js'
    const worker = new Worker(new URL(file, import.meta.url), { name: 'aworld-train-render' })
    worker.on('message', ({ id, ids }: RenderWorkerReply) => pending.get(id)?.(ids))
    // What a thread died of shows as texts that their callers encode, where the same error reaches them.
    worker.on('error', () => {})
    worker.on('exit', () => {
      if (thread?.worker === worker) thread = null
      giveBack()
    })
    worker.unref()
    return { worker, tokenizers: new Set() }
  }

  const submit = ({ hash, tokenizerText, config }: TokenizerSource, text: string): Promise<Int32Array | null> => {
    thread ??= start()
    const { worker, tokenizers } = thread
    const post = (request: RenderWorkerRequest) => worker.postMessage(request)
    if (!tokenizers.has(hash)) {
      tokenizers.add(hash)
      post({ kind: 'tokenizer', hash, tokenizerText, config })
    }
    const id = nextId++
    const { promise, resolve } = Promise.withResolvers<Int32Array | null>()
    const timer = setTimeout(() => settle(null), deadlineMs)
    const settle = (ids: Int32Array | null) => {
      clearTimeout(timer)
      pending.delete(id)
      resolve(ids)
    }
    pending.set(id, settle)
    post({ kind: 'encode', id, hash, text })
    return promise
  }

  const worker: RenderWorker = {
    async encode(tokenizer, text, signal) {
      signal?.throwIfAborted()
      if (closed) return null
      const key = `${tokenizer.hash}\n${text}`
      let result = running.get(key)
      if (!result) {
        result = submit(tokenizer, text).finally(() => running.delete(key))
        running.set(key, result)
      }
      return signal ? await untilAborted(result, signal) : await result
    },
    async close() {
      closed = true
      giveBack()
      await thread?.worker.terminate()
    },
    [Symbol.asyncDispose]: () => worker.close(),
  }
  return worker
}

async function untilAborted<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([result, promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
