import { parentPort } from 'node:worker_threads'
import { type ReadAnswer, toTrainError } from '@aworld-train/core'
import { readTurn } from './read-turn.ts'
import type { AnswerBatch, AnswerReply, AnswerToRead } from './recorder-messages.ts'
import { createTokenPrefixes, type TokenPrefixes } from './token-prefixes.ts'

if (!parentPort) throw new Error('This module is a worker thread; start it through createRecorder.')
const port = parentPort

const readers = new Map<string, ReadAnswer>()
const records = new Map<number, TokenPrefixes>()

async function loadReader(url: string): Promise<ReadAnswer> {
  const { readAnswer } = (await import(url)) as { readAnswer?: unknown }
  if (typeof readAnswer !== 'function') throw new Error(`The reader module ${url} has no export readAnswer(body, stream, broken).`)
  readers.set(url, readAnswer as ReadAnswer)
  return readAnswer as ReadAnswer
}

function prefixesOf(record: number): TokenPrefixes {
  const prefixes = records.get(record) ?? createTokenPrefixes()
  records.set(record, prefixes)
  return prefixes
}

async function read(input: AnswerToRead): Promise<AnswerReply> {
  const { call, record, reader } = input
  try {
    const readAnswer = readers.get(reader) ?? (await loadReader(reader))
    return { call, turn: readTurn(input, readAnswer, prefixesOf(record)) }
  } catch (cause) {
    // No turn can continue an answer that could not be read. The next turn of its record has a whole prompt.
    records.delete(record)
    const { code, message } = toTrainError(cause, 'POLICY_RESPONSE_INVALID')
    return { call, error: { code, message } }
  }
}

async function readBatch({ answers, forgotten }: AnswerBatch): Promise<void> {
  const replies: AnswerReply[] = []
  for (const answer of answers) replies.push(await read(answer))
  for (const record of forgotten) records.delete(record)
  const moved = replies.flatMap((reply) =>
    'turn' in reply ? [reply.turn.suffixTokenIds.buffer, reply.turn.completionTokenIds.buffer, reply.turn.rolloutLogprobs.buffer] : [],
  )
  port.postMessage(replies, moved)
}

let last = Promise.resolve()
port.on('message', (batch: AnswerBatch) => {
  last = last.then(() => readBatch(batch))
})
