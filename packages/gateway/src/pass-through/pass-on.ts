import type { ServerResponse } from 'node:http'
import { type ChatAnswerHandler, TrainError } from '@aworld-train/core'
import { sendText, startStream } from '../stages/encode.ts'
import type { ErrorAnswer } from './engine-failure.ts'
import { UsageFilter } from './usage-filter.ts'

/** Receives an engine's answer. The client gets it in its own dialect, and the record keeps it as it arrived. */
export interface AnswerSink extends ChatAnswerHandler {
  /** The chunks of the answer, in order. */
  readonly chunks: readonly Buffer[]
  readonly contentType: string
  /** Called at the first bytes of an answer. */
  watch: { firstToken(): void } | null
  /** The server's error, if it answered with one. The client does not get its bytes. */
  error(): ErrorAnswer | null
  /** The error with which the server ended a stream that had begun; the client has received it. */
  gaveUp(): ErrorAnswer | null
  /** Throws POLICY_RESPONSE_INVALID if the answer is not whole. */
  check(): void
  /** Whether a meaningless byte may be sent at this point; within an event it may not. */
  isBetweenEvents(): boolean
  /** Sends the rest of a whole answer. */
  end(): void
}

/** Longest error of an engine that is read. */
const maxErrorBytes = 64 * 1024

/** A string of JSON cannot contain these bytes, because its quotes are escaped. */
const errorEvent = 'data: {"error":'

export const isStream = (contentType: string) => contentType.startsWith('text/event-stream')

/** The last bytes, as Latin-1. */
function tailOf(chunks: readonly Buffer[], length: number): string {
  let tail = ''
  for (let index = chunks.length - 1; index >= 0 && tail.length < length; index--) {
    const chunk = chunks[index]!
    tail = chunk.toString('latin1', Math.max(0, chunk.length - length + tail.length)) + tail
  }
  return tail
}

/** Whether the last bytes are those that end a stream of Chat Completions. */
const endsWithMark = (chunks: readonly Buffer[]) => tailOf(chunks, 32).includes('[DONE]')

/** The error that ends a stream, as vLLM 0.32 and SGLang 0.5 write it: the last event, except for the mark. */
function endsWithError(chunks: readonly Buffer[]): ErrorAnswer | null {
  const tail = tailOf(chunks, 4096)
  const at = tail.lastIndexOf(errorEvent)
  if (at < 0) return null
  const text = Buffer.from(tail.slice(at + 6).split('\n', 1)[0]!, 'latin1').toString('utf8')
  try {
    const { error } = JSON.parse(text) as { error?: { code?: unknown } | null }
    const status = typeof error?.code === 'number' && error.code >= 400 ? error.code : 500
    return { status, text, retryAfter: null }
  } catch {
    return { status: 500, text, retryAfter: null }
  }
}

/** Whether an event certainly ends with these bytes. */
const endsEvent = (chunk: Buffer) => /\n\r?\n$/.test(chunk.toString('latin1', chunk.length - 3))

/** Keeps an answer, or the beginning of an error. */
export class KeptAnswer {
  readonly chunks: Buffer[] = []
  contentType = ''
  watch: { firstToken(): void } | null = null
  #status = 200
  #retryAfter: string | null = null
  #errorBytes = 0

  onHead({ status, contentType, retryAfter }: Parameters<ChatAnswerHandler['onHead']>[0]): void {
    this.#status = status
    this.contentType = contentType
    this.#retryAfter = retryAfter
  }

  /** Whether the chunk is part of an answer. */
  keep(chunk: Buffer): boolean {
    const isAnswer = this.#status < 300
    if (isAnswer && this.chunks.length === 0) this.watch?.firstToken()
    if (isAnswer || this.#errorBytes < maxErrorBytes) this.chunks.push(chunk)
    if (!isAnswer) this.#errorBytes += chunk.length
    return isAnswer
  }

  isBetweenEvents(): boolean {
    return true
  }

  gaveUp(): ErrorAnswer | null {
    return null
  }

  error(): ErrorAnswer | null {
    if (this.#status < 300) return null
    const text = Buffer.concat(this.chunks).toString('utf8')
    return { status: this.#status, text, retryAfter: this.#retryAfter }
  }
}

/**
 * Sends each event of a stream as it comes, without the usage if only the gateway asked for it. An answer that is no stream is sent in one
 * piece, with its length, when it is whole.
 */
export class PassedAnswer extends KeptAnswer implements AnswerSink {
  readonly #response: ServerResponse
  readonly #filter: UsageFilter | null
  #streams = false
  #sent: Buffer | null = null

  constructor(response: ServerResponse, hidesUsage: boolean) {
    super()
    this.#response = response
    this.#filter = hidesUsage ? new UsageFilter() : null
  }

  override onHead(head: Parameters<ChatAnswerHandler['onHead']>[0]): void {
    super.onHead(head)
    this.#streams = head.status < 300 && isStream(head.contentType)
    if (this.#streams) startStream(this.#response, head.contentType)
  }

  onData(chunk: Buffer, resume: () => void): boolean {
    if (!this.keep(chunk) || !this.#streams) return true
    const response = this.#response
    // A closed response never drains, and its call is aborted.
    if (response.destroyed) return true
    const shown = this.#filter ? this.#filter.push(chunk) : chunk
    if (shown.length === 0) return true
    this.#sent = shown
    if (response.write(shown)) return true
    response.once('drain', resume)
    return false
  }

  override gaveUp(): ErrorAnswer | null {
    return this.#streams ? endsWithError(this.chunks) : null
  }

  check(): void {
    if (!this.#streams || endsWithMark(this.chunks)) return
    throw new TrainError('POLICY_RESPONSE_INVALID', 'The stream of the engine ended before its last event.')
  }

  override isBetweenEvents(): boolean {
    return this.#sent === null || endsEvent(this.#sent)
  }

  end(): void {
    const rest = this.#streams ? (this.#filter?.rest() ?? '') : Buffer.concat(this.chunks)
    sendText(this.#response, 200, this.contentType || 'application/json', rest)
  }
}
