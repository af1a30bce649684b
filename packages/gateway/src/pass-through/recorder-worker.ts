import { parentPort } from 'node:worker_threads'
import type { ReadAnswer } from '@aworld-train/core'
import { toTrainError } from '@aworld-train/protocol'
import { readTurn } from './read-turn.ts'
import type { RecordBatch, RecordReply, RecordRequest } from './recorder-protocol.ts'
import { createTokenPrefixes, type TokenPrefixes } from './token-prefixes.ts'

if (!parentPort) throw new Error('This module is a worker thread; start it through createRecorder.')
const port = parentPort
const readers = new Map<string, ReadAnswer | Promise<ReadAnswer>>()
const records = new Map<number, TokenPrefixes>()

function readerOf(url: string): ReadAnswer | Promise<ReadAnswer> {
  let reader = readers.get(url)
  if (!reader) {
    reader = import(url).then(({ readAnswer }: { readAnswer?: unknown }) => {
      if (typeof readAnswer !== 'function') throw new Error(`The reader module ${url} has no export readAnswer(body, stream, contentType).`)
      readers.set(url, readAnswer as ReadAnswer)
      return readAnswer as ReadAnswer
    })
    readers.set(url, reader)
  }
  return reader
}

function recordOf(id: number): TokenPrefixes {
  let record = records.get(id)
  if (!record) {
    record = createTokenPrefixes()
    records.set(id, record)
  }
  return record
}

/** The same numbers in a buffer of their own, which can be handed over. */
const owned = <Ids extends Int32Array | Float32Array>(ids: Ids): Ids =>
  ids.byteLength === ids.buffer.byteLength ? ids : (ids.slice() as Ids)

async function reply(request: RecordRequest, bytes: Uint8Array, transfers: ArrayBuffer[]): Promise<RecordReply> {
  try {
    const found = readerOf(request.reader)
    const turn = readTurn(request, bytes, found instanceof Promise ? await found : found, recordOf(request.record))
    const { completion } = turn
    const promptTokenIds = owned(completion.promptTokenIds)
    const completionTokenIds = owned(completion.completionTokenIds)
    const rolloutLogprobs = owned(completion.rolloutLogprobs)
    transfers.push(promptTokenIds.buffer as ArrayBuffer, completionTokenIds.buffer as ArrayBuffer, rolloutLogprobs.buffer as ArrayBuffer)
    return { id: request.id, turn: { ...turn, completion: { ...completion, promptTokenIds, completionTokenIds, rolloutLogprobs } } }
  } catch (cause) {
    const { code, message } = toTrainError(cause, 'POLICY_RESPONSE_INVALID')
    return { id: request.id, error: { code, message } }
  }
}

async function readBatch({ requests, bytes, forgotten }: RecordBatch): Promise<void> {
  const transfers: ArrayBuffer[] = []
  const replies: RecordReply[] = []
  for (const request of requests) replies.push(await reply(request, bytes, transfers))
  if (replies.length > 0) port.postMessage(replies, transfers)
  for (const record of forgotten) records.delete(record)
}

let last = Promise.resolve()
port.on('message', (batch: RecordBatch) => {
  last = last.then(() => readBatch(batch))
})
