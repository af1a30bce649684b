import { parentPort } from 'node:worker_threads'
import type { ReadAnswer } from '@aworld-train/core'
import { toTrainError } from '@aworld-train/protocol'
import { readTurn } from './read-turn.ts'
import { fieldsOfAnswer, type ReadTurn, type RecordBatch, type RecordReplies, type ReplyHead } from './recorder-protocol.ts'
import { createTokenPrefixes, type TokenPrefixes } from './token-prefixes.ts'

if (!parentPort) throw new Error('This module is a worker thread; start it through createRecorder.')
const port = parentPort
const strings: string[] = []
const readers = new Map<string, ReadAnswer>()
const records = new Map<number, TokenPrefixes>()

async function loadReader(url: string): Promise<ReadAnswer> {
  const { readAnswer } = (await import(url)) as { readAnswer?: unknown }
  if (typeof readAnswer !== 'function') throw new Error(`The reader module ${url} has no export readAnswer(body, stream, contentType).`)
  readers.set(url, readAnswer as ReadAnswer)
  return readAnswer as ReadAnswer
}

function recordOf(id: number): TokenPrefixes {
  let record = records.get(id)
  if (!record) {
    record = createTokenPrefixes()
    records.set(id, record)
  }
  return record
}

/** Ids and logprobs, one behind the other in a buffer that can be handed over. */
function joinTokens({ completion: { promptTokenIds, completionTokenIds, rolloutLogprobs } }: ReadTurn): ArrayBuffer {
  const ids = new Int32Array(promptTokenIds.length + 2 * completionTokenIds.length)
  ids.set(promptTokenIds)
  ids.set(completionTokenIds, promptTokenIds.length)
  new Float32Array(ids.buffer, 4 * (promptTokenIds.length + completionTokenIds.length)).set(rolloutLogprobs)
  return ids.buffer
}

function toHead({ completion, ...turn }: ReadTurn): ReplyHead {
  const { promptTokenIds, completionTokenIds, rolloutLogprobs: _, ...rest } = completion
  return { ...turn, promptTokens: promptTokenIds.length, completionTokens: completionTokenIds.length, completion: rest }
}

async function readBatch({ answers, bytes, strings: added, forgotten }: RecordBatch): Promise<void> {
  for (const text of added) strings.push(text)
  const tokens: ArrayBuffer[] = []
  const heads: ReplyHead[] = []
  let offset = 0
  for (let at = 0; at < answers.length; at += fieldsOfAnswer) {
    const [call, record, reader, contentType, requestLength, answerLength] = answers.subarray(
      at,
      at + fieldsOfAnswer,
    ) as unknown as number[]
    const middle = offset + requestLength!
    const end = middle + answerLength!
    try {
      const url = strings[reader!]!
      const read = readers.get(url) ?? (await loadReader(url))
      const given = {
        call: call!,
        record: record!,
        reader: url,
        contentType: strings[contentType!]!,
        request: bytes.subarray(offset, middle),
        answer: bytes.subarray(middle, end),
      }
      const turn = readTurn(given, read, recordOf(record!))
      heads.push(toHead(turn))
      tokens.push(joinTokens(turn))
    } catch (cause) {
      const { code, message } = toTrainError(cause, 'POLICY_RESPONSE_INVALID')
      heads.push({ call: call!, error: { code, message } })
    }
    offset = end
  }
  port.postMessage({ heads: JSON.stringify(heads), tokens } satisfies RecordReplies, tokens)
  for (const record of forgotten) records.delete(record)
}

let last = Promise.resolve()
port.on('message', (batch: RecordBatch) => {
  last = last.then(() => readBatch(batch))
})
