import { type MessagePort, type Transferable, Worker } from 'node:worker_threads'
import type { AttemptLog, TurnLog } from '@aworld-train/core'
import { type Sampling, TrainError } from '@aworld-train/protocol'
import { largestMemory, type MemoryPool } from '../memory-pool.ts'
import { bytesToCopy, createOpenBatch, type OpenBatch, type RecordJob } from './record-batch.ts'
import { RecordedTurn } from './recorded-turn.ts'
import { fieldsOfReply, type OpenedRecord, type RecordBatch, type RecordReplies } from './recorder-protocol.ts'
import { createStrings } from './strings.ts'

/** Whose turns a record holds. */
export interface RecordOptions {
  readonly agent: string
  readonly attempt: number
  /** Named by its turns, where it is not the policy of the rollout. */
  readonly model?: string | undefined
  /** Where the thread makes the turns durable before it says that they are read. */
  readonly log?: AttemptLog | undefined
}

/** Reads answers in a thread of its own; those that end at about the same time travel in one message. */
export interface Recorder {
  newRecord(options: RecordOptions): number
  /** `done` hears the turn, or the reader's error or that of the record's log. Answers of a record are read in the order given. */
  read(job: RecordJob, done: (turn: RecordedTurn | null, error: TrainError | null) => void): void
  /** Somebody waits: what was given is sent now. */
  flush(): void
  /** The record will not be added to. */
  forget(record: number): void
  /** Bytes that are not read yet. */
  pendingBytes(): number
  /** Resolves when fewer bytes than the limit wait; `null` where they do. */
  room(): Promise<void> | null
  close(): Promise<void>
}

/** Bytes that may wait for the thread: what comes faster than it reads is held at the door, not in memory. */
const maxPendingBytes = 256 * 1024 * 1024

/** How long an answer waits for others while nobody waits for it, and how many bytes do not wait. */
const gatherMs = 50
const gatherBytes = 1024 * 1024

/** Room for a batch: what does not fit begins the next. */
const batchBytes = largestMemory

interface Pending {
  readonly record: OpenRecord
  readonly bytes: number
  readonly abandoned: boolean
  done(turn: RecordedTurn | null, error: TrainError | null): void
}

interface OpenRecord {
  readonly options: RecordOptions
  /** Whether the thread has heard of it. */
  announced: boolean
  turns: number
}

/** What is recorded lies in memory of `pool`, which moves to the thread and back. */
export function createRecorder(pool: MemoryPool): Recorder {
  const pending = new Map<number, Pending>()
  const waiting: (() => void)[] = []
  let batch: OpenBatch | null = null
  let opened: OpenedRecord[] = []
  let forgotten: number[] = []
  let worker: Worker | null = null
  let strings = createStrings()
  let logs = new Map<TurnLog, number>()
  let newLogs: MessagePort[] = []
  const samplings = new WeakMap<Sampling, string>()
  let timer: NodeJS.Timeout | null = null
  let pendingBytes = 0
  let calls = 0
  let created = 0
  let closed = false
  const records = new Map<number, OpenRecord>()

  function settle(call: number): Pending | undefined {
    const entry = pending.get(call)
    if (!entry) return undefined
    pending.delete(call)
    pendingBytes -= entry.bytes
    if (waiting.length > 0 && pendingBytes < maxPendingBytes) for (const resolve of waiting.splice(0)) resolve()
    return entry
  }

  function fail(error: TrainError): void {
    for (const call of [...pending.keys()]) settle(call)?.done(null, error)
  }

  function take(reply: RecordReplies): void {
    const { turns, errors, memory } = reply
    for (const each of memory) pool.takeBack(each)
    for (const { call, code, message, logged } of errors) {
      const entry = settle(call)
      const error = new TrainError(code, message)
      if (logged) entry?.record.options.log?.failed(error)
      entry?.done(null, error)
    }
    let bodyAt = 0
    let tokenAt = 0
    for (let at = 0; at < turns.length; at += fieldsOfReply) {
      const entry = settle(turns[at]!)
      if (entry) {
        entry.record.turns = turns[at + 1]! + 1
        entry.done(new RecordedTurn(entry.abandoned ? 'abandoned' : 'pending', { reply, at, bodyAt, tokenAt }), null)
      }
      bodyAt += turns[at + 9]!
      tokenAt += turns[at + 5]! + 2 * turns[at + 6]!
    }
  }

  function start(): Worker {
    const file = import.meta.url.endsWith('.ts') ? './recorder-worker.ts' : './recorder-worker.js'
    const thread = new Worker(new URL(file, import.meta.url), { name: 'aworld-train-recorder' })
    thread.on('message', take)
    let cause: unknown
    thread.on('error', (error) => {
      cause = error
    })
    thread.on('exit', (code) => {
      if (closed) return
      worker = null
      strings = createStrings()
      logs = new Map()
      newLogs = []
      for (const record of records.values()) record.announced = false
      opened = []
      forgotten = []
      batch = null
      fail(new TrainError('GATEWAY_FAILED', `The recorder thread ended with code ${code}; the answers that it held are lost.`, { cause }))
    })
    return thread
  }

  function numberOf(log: TurnLog): number {
    let number = logs.get(log)
    if (number === undefined) {
      number = logs.size
      logs.set(log, number)
      newLogs.push(log.connect())
    }
    return number
  }

  function announce(record: number, open: OpenRecord): void {
    const { agent, attempt, model, log } = open.options
    open.announced = true
    const at = log ? { number: numberOf(log.log), rollout: log.rollout, attempt: log.attempt } : null
    opened.push({ record, agent, attempt, model, turns: open.turns, log: at })
  }

  const textOf = (sampling: Sampling): string => {
    let text = samplings.get(sampling)
    if (text === undefined) {
      text = JSON.stringify(sampling)
      samplings.set(sampling, text)
    }
    return text
  }

  function flush(): void {
    if (timer) clearTimeout(timer)
    timer = null
    if (!batch && forgotten.length === 0) return
    worker ??= start()
    const answers = batch?.fields() ?? new Float64Array(0)
    const bytes = batch?.bytes() ?? new Uint8Array(0)
    const message: RecordBatch = {
      answers,
      bytes,
      requests: batch?.requests ?? [],
      strings: strings.take(),
      samplings: batch?.samplings ?? [],
      opened,
      logs: newLogs,
      forgotten,
    }
    opened = []
    forgotten = []
    const ports = newLogs
    newLogs = []
    const memory = batch ? [bytes.buffer, ...message.requests.map(({ buffer }) => buffer)] : []
    batch = null
    worker.postMessage(message, [answers.buffer, ...ports, ...memory] as Transferable[])
  }

  return {
    newRecord(options) {
      records.set(created, { options, announced: false, turns: 0 })
      return created++
    },
    read(job, done) {
      const { record, request, broken } = job
      const call = calls++
      const open = records.get(record)!
      const copied = bytesToCopy(job, pool)
      const bytes = pool.owns(request) ? copied + request.length : copied
      pendingBytes += bytes
      if (batch && !batch.fits(copied)) flush()
      batch ??= createOpenBatch({ bytes: pool.take(Math.max(copied, batchBytes)) ?? Buffer.allocUnsafeSlow(copied), pool }, textOf)
      if (!open.announced) announce(record, open)
      const numbers = {
        reader: strings.number(job.reader.href),
        contentType: strings.number(job.contentType),
        logprobs: strings.number(job.logprobs),
        broken: broken ? strings.number(JSON.stringify(broken)) : -1,
      }
      batch.add(call, numbers, job)
      if (batch.usedBytes() >= gatherBytes) flush()
      else timer ??= setTimeout(flush, gatherMs)
      pending.set(call, { record: open, bytes, abandoned: job.abandoned, done })
    },
    flush,
    forget(record) {
      const announced = records.get(record)?.announced
      records.delete(record)
      if (!announced || !worker) return
      forgotten.push(record)
      timer ??= setTimeout(flush, gatherMs)
    },
    pendingBytes: () => pendingBytes,
    room() {
      if (pendingBytes < maxPendingBytes) return null
      return new Promise<void>((resolve) => waiting.push(resolve))
    },
    async close() {
      closed = true
      if (timer) clearTimeout(timer)
      fail(new TrainError('GATEWAY_FAILED', 'The gateway was closed before the answer was recorded.'))
      await worker?.terminate()
    },
  }
}
