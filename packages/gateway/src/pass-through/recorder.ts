import { Worker } from 'node:worker_threads'
import { TrainError } from '@aworld-train/protocol'
import type { ReadTurn, RecordBatch, RecordReply, RecordRequest } from './recorder-protocol.ts'

export interface RecordJob {
  /** Calls of one record are matched with each other. */
  readonly record: number
  readonly reader: URL
  readonly stream: boolean
  readonly contentType: string
  /** The request as its client sent it. */
  readonly request: Uint8Array
  readonly answer: readonly Uint8Array[]
}

/** Reads answers in a thread of its own; many that end together travel in one message. */
export interface Recorder {
  /** A number for a new record. */
  newRecord(): number
  /** Resolves to the call's number and its turn; rejects with the reader's error. Answers of a record are read in the order given. */
  read(job: RecordJob): Promise<ReadTurn & { readonly id: number }>
  /** The record will not be added to. */
  forget(record: number): void
  /** Bytes that are not read yet. */
  pendingBytes(): number
  /** Resolves when fewer bytes than the limit wait. */
  room(): Promise<void>
  close(): Promise<void>
}

/** Bytes that may wait for the thread: what comes faster than it reads is held at the door, not in memory. */
const maxPendingBytes = 256 * 1024 * 1024

interface Pending {
  readonly bytes: number
  resolve(turn: ReadTurn & { readonly id: number }): void
  reject(error: TrainError): void
}

export function createRecorder(): Recorder {
  const pending = new Map<number, Pending>()
  const waiting: (() => void)[] = []
  let queue: { readonly id: number; readonly job: RecordJob }[] = []
  let forgotten: number[] = []
  let worker: Worker | null = null
  let flushing: NodeJS.Immediate | null = null
  let pendingBytes = 0
  let calls = 0
  let recordCount = 0
  let closed = false

  function settle(id: number): Pending | undefined {
    const entry = pending.get(id)
    if (!entry) return undefined
    pending.delete(id)
    pendingBytes -= entry.bytes
    if (pendingBytes < maxPendingBytes) for (const resolve of waiting.splice(0)) resolve()
    return entry
  }

  function fail(error: TrainError): void {
    for (const id of [...pending.keys()]) settle(id)?.reject(error)
  }

  function start(): Worker {
    const file = import.meta.url.endsWith('.ts') ? './recorder-worker.ts' : './recorder-worker.js'
    const thread = new Worker(new URL(file, import.meta.url), { name: 'aworld-train-recorder' })
    thread.on('message', (replies: readonly RecordReply[]) => {
      for (const reply of replies) {
        const entry = settle(reply.id)
        if ('turn' in reply) entry?.resolve({ ...reply.turn, id: reply.id })
        else entry?.reject(new TrainError(reply.error.code, reply.error.message))
      }
    })
    let cause: unknown
    thread.on('error', (error) => {
      cause = error
    })
    thread.on('exit', (code) => {
      if (worker === thread) worker = null
      if (closed) return
      fail(new TrainError('GATEWAY_FAILED', `The recorder thread ended with code ${code}; the answers that it held are lost.`, { cause }))
    })
    return thread
  }

  function flush(): void {
    flushing = null
    let size = 0
    for (const { job } of queue) size += job.request.length + job.answer.reduce((sum, chunk) => sum + chunk.length, 0)
    const bytes = Buffer.allocUnsafeSlow(size)
    let at = 0
    const requests = queue.map(({ id, job }): RecordRequest => {
      const { record, reader, stream, contentType, request, answer } = job
      const offset = at
      bytes.set(request, at)
      at += request.length
      for (const chunk of answer) {
        bytes.set(chunk, at)
        at += chunk.length
      }
      const answerLength = at - offset - request.length
      return { id, record, reader: reader.href, stream, contentType, offset, requestLength: request.length, answerLength }
    })
    const batch: RecordBatch = { requests, bytes, forgotten }
    queue = []
    forgotten = []
    worker ??= start()
    worker.postMessage(batch, [bytes.buffer])
  }

  return {
    newRecord: () => recordCount++,
    read(job) {
      const id = calls++
      const bytes = job.request.length + job.answer.reduce((sum, chunk) => sum + chunk.length, 0)
      pendingBytes += bytes
      queue.push({ id, job })
      flushing ??= setImmediate(flush)
      return new Promise((resolve, reject) => pending.set(id, { bytes, resolve, reject }))
    },
    forget(record) {
      forgotten.push(record)
      if (worker) flushing ??= setImmediate(flush)
    },
    pendingBytes: () => pendingBytes,
    async room() {
      while (pendingBytes >= maxPendingBytes) await new Promise<void>((resolve) => waiting.push(resolve))
    },
    async close() {
      closed = true
      if (flushing) clearImmediate(flushing)
      fail(new TrainError('GATEWAY_FAILED', 'The gateway was closed before the answer was recorded.'))
      await worker?.terminate()
    },
  }
}
