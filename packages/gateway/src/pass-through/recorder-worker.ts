import { parentPort } from 'node:worker_threads'
import type { ReadAnswer } from '@aworld-train/core'
import { toTrainError } from '@aworld-train/protocol'
import { type ReadAnswerTurn, readTurn } from './read-turn.ts'
import { createReaderMemories } from './reader-memories.ts'
import { fieldsOfAnswer, type RecordBatch, type RecordReplies, type ReplyHead } from './recorder-protocol.ts'
import { createTokenPrefixes, type TokenPrefixes } from './token-prefixes.ts'

if (!parentPort) throw new Error('This module is a worker thread; start it through createRecorder.')
const port = parentPort
const strings: string[] = []
const readers = new Map<string, ReadAnswer>()
const records = new Map<number, TokenPrefixes>()
const memories = createReaderMemories(128 * 1024 * 1024)

async function loadReader(url: string): Promise<ReadAnswer> {
  const { readAnswer } = (await import(url)) as { readAnswer?: unknown }
  if (typeof readAnswer !== 'function') throw new Error(`The reader module ${url} has no export readAnswer(body, stream, contentType).`)
  readers.set(url, readAnswer as ReadAnswer)
  return readAnswer as ReadAnswer
}

function prefixesOf(record: number): TokenPrefixes {
  let prefixes = records.get(record)
  if (!prefixes) {
    prefixes = createTokenPrefixes()
    records.set(record, prefixes)
  }
  return prefixes
}

/** What a batch is answered with, as it grows. */
function createReplies() {
  const heads: ReplyHead[] = []
  let ids = new Int32Array(1024)
  let logprobs = new Float32Array(1024)
  let idCount = 0
  let logprobCount = 0

  function reserve(moreIds: number, moreLogprobs: number): void {
    if (ids.length < idCount + moreIds) {
      const larger = new Int32Array(2 * (idCount + moreIds))
      larger.set(ids.subarray(0, idCount))
      ids = larger
    }
    if (logprobs.length < logprobCount + moreLogprobs) {
      const larger = new Float32Array(2 * (logprobCount + moreLogprobs))
      larger.set(logprobs.subarray(0, logprobCount))
      logprobs = larger
    }
  }

  return {
    add({ completion, prefixTokens, ...turn }: ReadAnswerTurn): void {
      const { promptTokenIds, completionTokenIds, rolloutLogprobs, repeatedTokens: _, ...rest } = completion
      const suffixTokens = promptTokenIds.length - prefixTokens
      reserve(suffixTokens + completionTokenIds.length, rolloutLogprobs.length)
      ids.set(promptTokenIds.subarray(prefixTokens), idCount)
      ids.set(completionTokenIds, idCount + suffixTokens)
      idCount += suffixTokens + completionTokenIds.length
      logprobs.set(rolloutLogprobs, logprobCount)
      logprobCount += rolloutLogprobs.length
      heads.push({ ...turn, suffixTokens, completionTokens: completionTokenIds.length, completion: rest })
    },
    fail(call: number, cause: unknown): void {
      const { code, message } = toTrainError(cause, 'POLICY_RESPONSE_INVALID')
      heads.push({ call, error: { code, message } })
    },
    /** Copies of what was filled: turns keep them. */
    finish: (): RecordReplies => ({
      heads: JSON.stringify(heads),
      ids: ids.slice(0, idCount),
      logprobs: logprobs.slice(0, logprobCount),
    }),
  }
}

async function readBatch({ answers, bytes, strings: added, forgotten }: RecordBatch): Promise<void> {
  for (const text of added) strings.push(text)
  const replies = createReplies()
  let offset = 0
  for (let at = 0; at < answers.length; at += fieldsOfAnswer) {
    const call = answers[at]!
    const record = answers[at + 1]!
    const reader = strings[answers[at + 2]!]!
    const contentType = strings[answers[at + 3]!]!
    const middle = offset + answers[at + 4]!
    const end = middle + answers[at + 5]!
    try {
      const read = readers.get(reader) ?? (await loadReader(reader))
      const given = { call, record, reader, contentType, request: bytes.subarray(offset, middle), answer: bytes.subarray(middle, end) }
      const memory = memories.take(record)
      replies.add(readTurn(given, read, { prefixes: prefixesOf(record), memory }))
      memories.give(record, memory)
    } catch (cause) {
      replies.fail(call, cause)
    }
    offset = end
  }
  const message = replies.finish()
  port.postMessage(message, [message.ids.buffer, message.logprobs.buffer] as ArrayBuffer[])
  for (const record of forgotten) {
    records.delete(record)
    memories.take(record)
  }
}

let last = Promise.resolve()
port.on('message', (batch: RecordBatch) => {
  last = last.then(() => readBatch(batch))
})
