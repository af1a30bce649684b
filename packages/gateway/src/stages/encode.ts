import type { ServerResponse } from 'node:http'
import type { AnswerHead, Completion, Dialect, StreamPiece } from '../call.ts'
import type { HttpFailure } from '../failure.ts'

/** The answer to one call on its way to the client. */
export interface Answer {
  piece(piece: StreamPiece): void
  end(completion: Completion): void
  fail(failure: HttpFailure): void
}

const json = 'application/json'
const eventStream = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' }

/** Answers with `text`, or ends with it a response whose head was already sent. */
export function sendText(
  response: ServerResponse,
  status: number,
  type: string,
  text: string | Buffer,
  headers?: Record<string, string>,
): void {
  if (response.destroyed || response.writableEnded) return
  if (response.headersSent) {
    response.end(text)
    return
  }
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text), ...headers })
  response.end(text)
}

/** Sends the head of a server's stream that is passed on, unless a head was already sent. */
export function startStream(response: ServerResponse, contentType: string): void {
  if (!response.headersSent && !response.destroyed) response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-cache' })
}

function wholeAnswer(dialect: Dialect, head: AnswerHead, response: ServerResponse): Answer {
  return {
    piece() {},
    end: (completion) => sendText(response, 200, json, dialect.encode(head, completion)),
    fail: (failure) => sendFailure(dialect, response, failure, false),
  }
}

function streamedAnswer(dialect: Dialect, head: AnswerHead, response: ServerResponse): Answer {
  const encoder = dialect.createStream(head)
  let started = false
  const start = () => {
    if (started) return ''
    started = true
    if (!response.headersSent) response.writeHead(200, eventStream)
    return encoder.start()
  }
  return {
    piece(piece) {
      if (response.destroyed) return
      const text = start() + encoder.piece(piece)
      if (text !== '') response.write(text)
    },
    end(completion) {
      if (!response.destroyed) response.end(start() + encoder.end(completion))
    },
    fail(failure) {
      if (!response.headersSent) sendFailure(dialect, response, failure, true)
      else if (!response.destroyed && !response.writableEnded) response.end(encoder.fail(failure))
    },
  }
}

/** Creates the answer to a call. A stream's headers are sent with its first token, so that an earlier failure can have its own status. */
export function createAnswer(dialect: Dialect, head: AnswerHead, response: ServerResponse): Answer {
  return head.call.stream ? streamedAnswer(dialect, head, response) : wholeAnswer(dialect, head, response)
}

/** Sends a waiting client a meaningless byte: a comment in a stream, else white space, which JSON allows before a value. */
export function sendNothing(dialect: Dialect, response: ServerResponse, stream: boolean): void {
  if (response.destroyed || response.writableEnded) return
  if (!response.headersSent) response.writeHead(200, stream ? eventStream : { 'content-type': json })
  response.write(stream ? dialect.streamComment : ' ')
}

function failureHeaders({ retry, retryAfterSeconds, allow }: HttpFailure): Record<string, string> | undefined {
  if (!retry) return { 'x-should-retry': 'false', ...(allow !== undefined && { allow }) }
  return retryAfterSeconds === null ? undefined : { 'retry-after': String(Math.max(0, Math.ceil(retryAfterSeconds))) }
}

/** Tells the client that a call without an answer failed: by a status or, if a stream's head was already sent, by its only event. */
export function sendFailure(dialect: Dialect, response: ServerResponse, failure: HttpFailure, stream: boolean): void {
  if (response.destroyed || response.writableEnded) return
  if (stream && response.headersSent) response.end(dialect.encodeStreamFailure(failure))
  else sendText(response, failure.status, json, dialect.encodeFailure(failure), failureHeaders(failure))
}
