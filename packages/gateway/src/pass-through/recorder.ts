import { Worker } from 'node:worker_threads'
import { type FinishReason, siblingModule, TrainError } from '@aworld-train/core'
import type { AnswerBatch, AnswerReply, AnswerToRead, ReadTurn } from './recorder-messages.ts'

/** An answer with its request. */
export interface RecordJob {
  /** Number from `newRecord`. */
  readonly record: number
  readonly reader: URL
  readonly stream: boolean
  readonly request: Uint8Array
  readonly answer: readonly Uint8Array[]
  /** Why the answer may stop in its middle. */
  readonly broken: FinishReason | null
}

/** A turn, with the number by which later turns name it. */
export interface NumberedTurn extends ReadTurn {
  readonly call: number
}

/** Reads answers in a thread of its own. Answers that end at about the same time travel in one message. */
export interface Recorder {
  /** Returns a number for a new record, whose answers may continue each other. */
  newRecord(): number
  /** Reads an answer. Rejects with the reader's error. Answers of a record are read in the order of these calls. */
  read(job: RecordJob): Promise<NumberedTurn>
  /** Sends waiting answers to the thread now, because somebody waits for them. */
  flush(): void
  /** Says that the record gets no more answers. */
  forget(record: number): void
  /** Resolves when fewer bytes wait for the thread than may. */
  room(): Promise<void>
  close(): Promise<void>
}

/**
 * Most bytes that wait for the thread. Beyond it new calls are delayed, so that memory stays bounded if answers
 * come faster than they are read.
 */
const maxPendingBytes = 256 * 1024 * 1024

/** How long an answer that nobody waits for is held back for others to join it. */
const gatherMs = 10

interface Pending extends PromiseWithResolvers<NumberedTurn> {
  readonly bytes: number
}

/** Copies bytes into memory of their own, which can move to another thread. */
function copyOf(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

export function createRecorder(): Recorder {
  const pending = new Map<number, Pending>()
  const waiting: (() => void)[] = []
  let answers: AnswerToRead[] = []
  let forgotten: number[] = []
  let worker: Worker | null = null
  let timer: NodeJS.Timeout | null = null
  let pendingBytes = 0
  let calls = 0
  let records = 0
  let closed = false

  function settle(call: number): Pending | undefined {
    const entry = pending.get(call)
    if (!entry) return undefined
    pending.delete(call)
    pendingBytes -= entry.bytes
    if (pendingBytes < maxPendingBytes) for (const resolve of waiting.splice(0)) resolve()
    return entry
  }

  function fail(error: TrainError): void {
    for (const call of [...pending.keys()]) settle(call)?.reject(error)
  }

  function take(replies: readonly AnswerReply[]): void {
    for (const reply of replies) {
      const { call } = reply
      if ('turn' in reply) settle(call)?.resolve({ ...reply.turn, call })
      else settle(call)?.reject(new TrainError(reply.error.code, reply.error.message))
    }
  }

  function start(): Worker {
    const thread = new Worker(siblingModule('recorder-worker', import.meta.url), { name: 'aworld-train-recorder' })
    thread.on('message', take)
    let cause: unknown
    thread.on('error', (error) => {
      cause = error
    })
    thread.on('exit', (code) => {
      if (closed) return
      worker = null
      answers = []
      fail(new TrainError('GATEWAY_FAILED', `The recorder thread ended with code ${code}; the answers that it held are lost.`, { cause }))
    })
    return thread
  }

  function flush(): void {
    if (timer) clearTimeout(timer)
    timer = null
    if (answers.length === 0 && forgotten.length === 0) return
    worker ??= start()
    const batch: AnswerBatch = { answers, forgotten }
    answers = []
    forgotten = []
    worker.postMessage(
      batch,
      batch.answers.flatMap(({ request, answer }) => [request.buffer, answer.buffer]),
    )
  }

  return {
    newRecord: () => records++,
    read({ record, reader, stream, request, answer, broken }) {
      const call = calls++
      const copied = { request: copyOf([request]), answer: copyOf(answer) }
      const entry = { ...Promise.withResolvers<NumberedTurn>(), bytes: copied.request.length + copied.answer.length }
      pending.set(call, entry)
      pendingBytes += entry.bytes
      answers.push({ call, record, reader: reader.href, stream, ...copied, broken })
      timer ??= setTimeout(flush, gatherMs)
      return entry.promise
    },
    flush,
    forget(record) {
      if (!worker) return
      forgotten.push(record)
      timer ??= setTimeout(flush, gatherMs)
    },
    async room() {
      while (pendingBytes >= maxPendingBytes) await new Promise<void>((resolve) => waiting.push(resolve))
    },
    async close() {
      closed = true
      if (timer) clearTimeout(timer)
      fail(new TrainError('GATEWAY_FAILED', 'The gateway was closed before the answer was recorded.'))
      await worker?.terminate()
    },
  }
}
