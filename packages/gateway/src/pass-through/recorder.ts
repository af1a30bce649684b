import { Worker } from 'node:worker_threads'
import { TrainError } from '@aworld-train/protocol'
import { createOpenBatch, type OpenBatch } from './record-batch.ts'
import { createRecordTokens, type RecordTokens } from './record-tokens.ts'
import type { ReadTurn, RecordBatch, RecordReplies, ReplyHead } from './recorder-protocol.ts'
import { createSlabs, type Slab } from './slabs.ts'

export interface RecordJob {
  /** From `newRecord`. */
  readonly record: number
  readonly reader: URL
  readonly contentType: string
  /** The request as its client sent it. */
  readonly request: Uint8Array
  readonly answer: readonly Uint8Array[]
}

/** Reads answers in a thread of its own; those that end at about the same time travel in one message. */
export interface Recorder {
  newRecord(): number
  /** Rejects with the reader's error. Answers of a record are read in the order given. */
  read(job: RecordJob): Promise<ReadTurn>
  /** Somebody waits: what was given is sent now. */
  flush(): void
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

/** How long an answer waits for others while nobody waits for it, and how many bytes do not wait. */
const gatherMs = 20
const gatherBytes = 2 * 1024 * 1024

/** Room for a batch: what does not fit begins the next. */
const slabBytes = 2 * gatherBytes
const slabsKept = 8

interface Pending {
  readonly record: number
  readonly bytes: number
  resolve(turn: ReadTurn): void
  reject(error: TrainError): void
}

/** Strings by number, so that each is sent once. */
function createStrings() {
  const numbers = new Map<string, number>()
  let added: string[] = []
  return {
    number(text: string): number {
      let number = numbers.get(text)
      if (number === undefined) {
        number = numbers.size
        numbers.set(text, number)
        added.push(text)
      }
      return number
    },
    take(): string[] {
      const taken = added
      added = []
      return taken
    },
  }
}

export function createRecorder(): Recorder {
  const pending = new Map<number, Pending>()
  const waiting: (() => void)[] = []
  let batch: OpenBatch | null = null
  let forgotten: number[] = []
  let worker: Worker | null = null
  let strings = createStrings()
  const slabs = createSlabs(slabBytes, slabsKept)
  /** Of the batches that the thread has, first to last. */
  let lent: { readonly slab: Slab | null; readonly forgotten: readonly number[] }[] = []
  let timer: NodeJS.Timeout | null = null
  let pendingBytes = 0
  let calls = 0
  let records = 0
  let closed = false
  /** Of the records that have not been forgotten. */
  const tokens = new Map<number, RecordTokens>()

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

  function start(): Worker {
    const file = import.meta.url.endsWith('.ts') ? './recorder-worker.ts' : './recorder-worker.js'
    const thread = new Worker(new URL(file, import.meta.url), { name: 'aworld-train-recorder' })
    thread.on('message', ({ heads, ids, logprobs }: RecordReplies) => {
      const { slab, forgotten: over } = lent.shift()!
      if (slab) slabs.give(slab)
      let idAt = 0
      let logprobAt = 0
      for (const head of JSON.parse(heads) as ReplyHead[]) {
        const entry = settle(head.call)
        if ('error' in head) {
          entry?.reject(new TrainError(head.error.code, head.error.message))
          continue
        }
        const { call, parent, branchReason, messagesDelta, suffixTokens, completionTokens, completion } = head
        const middle = idAt + suffixTokens
        const end = middle + completionTokens
        const rolloutLogprobs = logprobs.subarray(logprobAt, logprobAt + completionTokens)
        const added = entry && tokens.get(entry.record)?.add(call, parent, ids.subarray(idAt, middle), ids.subarray(middle, end))
        idAt = end
        logprobAt += completionTokens
        if (added) {
          const { promptTokenIds, completionTokenIds } = added
          const { message, finishReason, usage, weightVersions } = completion
          const whole = { promptTokenIds, completionTokenIds, rolloutLogprobs, message, finishReason, usage, weightVersions }
          entry.resolve({ call, parent, branchReason, messagesDelta, completion: whole })
        } else entry?.reject(new TrainError('GATEWAY_FAILED', 'The session ended before the answer was read.'))
      }
      for (const record of over) tokens.delete(record)
    })
    let cause: unknown
    thread.on('error', (error) => {
      cause = error
    })
    thread.on('exit', (code) => {
      if (closed) return
      worker = null
      strings = createStrings()
      for (const record of [...lent.flatMap((each) => each.forgotten), ...forgotten.splice(0)]) tokens.delete(record)
      lent = []
      batch = null
      fail(new TrainError('GATEWAY_FAILED', `The recorder thread ended with code ${code}; the answers that it held are lost.`, { cause }))
    })
    return thread
  }

  function flush(): void {
    if (timer) clearTimeout(timer)
    timer = null
    if (!batch && forgotten.length === 0) return
    worker ??= start()
    const answers = batch?.fields() ?? new Int32Array(0)
    const message: RecordBatch = { answers, bytes: batch?.slab.bytes ?? new Uint8Array(0), strings: strings.take(), forgotten }
    lent.push({ slab: batch?.slab ?? null, forgotten })
    batch = null
    forgotten = []
    worker.postMessage(message, [answers.buffer])
  }

  return {
    newRecord() {
      tokens.set(records, createRecordTokens())
      return records++
    },
    read({ record, reader, contentType, request, answer }) {
      const call = calls++
      let bytes = request.length
      for (const chunk of answer) bytes += chunk.length
      pendingBytes += bytes
      if (batch && !batch.fits(bytes)) flush()
      batch ??= createOpenBatch(slabs.take(bytes))
      batch.add([call, record, strings.number(reader.href), strings.number(contentType)], { request, answer })
      if (batch.usedBytes() >= gatherBytes) flush()
      else timer ??= setTimeout(flush, gatherMs)
      return new Promise((resolve, reject) => pending.set(call, { record, bytes, resolve, reject }))
    },
    flush,
    forget(record) {
      if (!worker) {
        tokens.delete(record)
        return
      }
      forgotten.push(record)
      timer ??= setTimeout(flush, gatherMs)
    },
    pendingBytes: () => pendingBytes,
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
