import { parentPort } from 'node:worker_threads'
import type { ReadAnswer, TurnBatchReply } from '@aworld-train/core'
import type { FinishReason, LogprobKind } from '@aworld-train/protocol'
import { GrowingBytes } from './growing-bytes.ts'
import { createLogPort, type LogPort } from './log-port.ts'
import { readTurn } from './read-turn.ts'
import { createReaderMemories } from './reader-memories.ts'
import { fieldsOfAnswer, type OpenedRecord, type RecordBatch, type RecordReplies } from './recorder-protocol.ts'
import { createReplies, type Replies } from './recorder-replies.ts'
import { createTokenPrefixes, type TokenPrefixes } from './token-prefixes.ts'
import { turnBody } from './turn-body.ts'

if (!parentPort) throw new Error('This module is a worker thread; start it through createRecorder.')
const port = parentPort

interface KnownRecord {
  readonly opened: OpenedRecord
  readonly prefixes: TokenPrefixes
  readonly log: LogPort | null
  turns: number
}

const strings: string[] = []
const logs: LogPort[] = []
const readers = new Map<string, ReadAnswer>()
const records = new Map<number, KnownRecord>()
const replyMemory = { bodies: new GrowingBytes(), tokens: new GrowingBytes() }
const memories = createReaderMemories(384 * 1024 * 1024)

async function loadReader(url: string): Promise<ReadAnswer> {
  const { readAnswer } = (await import(url)) as { readAnswer?: unknown }
  if (typeof readAnswer !== 'function') throw new Error(`The reader module ${url} has no export readAnswer(body, stream, contentType).`)
  readers.set(url, readAnswer as ReadAnswer)
  return readAnswer as ReadAnswer
}

function open(opened: OpenedRecord): void {
  const log = opened.log ? logs[opened.log.number]! : null
  log?.open(opened)
  records.set(opened.record, { opened, prefixes: createTokenPrefixes(), log, turns: opened.turns })
}

function forget(record: number): void {
  records.get(record)?.log?.forget(record)
  records.delete(record)
  memories.take(record)
}

async function readAnswers({ answers, bytes, requests, samplings }: RecordBatch, replies: Replies): Promise<void> {
  let offset = 0
  for (let at = 0; at < answers.length; at += fieldsOfAnswer) {
    const call = answers[at]!
    const number = answers[at + 1]!
    const reader = strings[answers[at + 2]!]!
    const contentType = strings[answers[at + 3]!]!
    const said = answers[at + 6]!
    const fieldsAt = offset + Math.max(said, 0)
    const middle = fieldsAt + answers[at + 7]!
    const end = middle + answers[at + 8]!
    const broken = strings[answers[at + 14]!]
    try {
      const read = readers.get(reader) ?? (await loadReader(reader))
      const record = records.get(number)!
      const { opened, prefixes, log, turns: index } = record
      const memory = memories.take(number)
      const given = {
        index,
        contentType,
        request: said < 0 ? requests[-1 - said]! : bytes.subarray(offset, fieldsAt),
        unusedFields: bytes.subarray(fieldsAt, middle),
        answer: bytes.subarray(middle, end),
        broken: broken === undefined ? null : (JSON.parse(broken) as FinishReason),
      }
      const turn = readTurn(given, read, { prefixes, memory })
      memories.give(number, memory)
      const frame = {
        record: opened,
        index,
        logprobs: strings[answers[at + 4]!]! as LogprobKind,
        sampling: samplings[answers[at + 5]!]!,
        startedAt: answers[at + 9]!,
        endedAt: answers[at + 10]!,
        lowestVersion: answers[at + 11]!,
        highestVersion: answers[at + 12]!,
        abandoned: answers[at + 13] === 1,
      }
      replies.add({ call, record: number, index, read: turn, body: turnBody(frame, turn), log })
      record.turns++
    } catch (cause) {
      replies.fail(call, cause)
    }
    offset = end
  }
}

async function logTurns(): Promise<ReadonlyMap<LogPort, TurnBatchReply['failures']>> {
  const sent = logs.flatMap((log) => {
    const answer = log.send()
    return answer ? [answer.then((failures) => [log, failures] as const)] : []
  })
  return new Map(await Promise.all(sent))
}

let lastAnswer = Promise.resolve()

/** Resolves when the next batch may be read; what is logged is answered when it is durable. */
async function readBatch(batch: RecordBatch): Promise<void> {
  for (const text of batch.strings) strings.push(text)
  for (const each of batch.logs) logs.push(createLogPort(each))
  for (const each of batch.opened) open(each)
  const replies = createReplies(replyMemory)
  await readAnswers(batch, replies)
  const finish = replies.close()
  for (const record of batch.forgotten) forget(record)
  const logged = logTurns()
  lastAnswer = Promise.all([logged, lastAnswer]).then(([failures]) => {
    const memory =
      batch.bytes.length + batch.requests.length === 0 ? [] : [batch.bytes, ...batch.requests].map(({ buffer }) => buffer as ArrayBuffer)
    const message: RecordReplies = { ...finish(failures), memory }
    port.postMessage(message, [message.turns.buffer, message.bodies.buffer, message.tokens.buffer, ...memory] as ArrayBuffer[])
  })
}

let last = Promise.resolve()
port.on('message', (batch: RecordBatch) => {
  last = last.then(() => readBatch(batch))
})
