import type { ChatAnswerHandler } from '@aworld-train/core'
import { parseAnswer } from '../http/server-error.ts'

interface WholeAnswer {
  readonly choices?: readonly { readonly message?: Record<string, unknown>; readonly [name: string]: unknown }[]
  readonly [name: string]: unknown
}

/**
 * Converts a whole Chat Completions answer to a stream of one event, because SGLang reports token ids only without streaming. The event has
 * all members of the answer, so that the reader of its bytes finds ids and logprobs in it.
 */
export function toSingleEventStream(body: Buffer): Buffer {
  const answer = parseAnswer<WholeAnswer>('sglang', body.toString('utf8'))
  const choices = (answer.choices ?? []).map(({ message, ...choice }) => ({
    ...choice,
    delta: { ...message, ...(Array.isArray(message?.['tool_calls']) && { tool_calls: withIndexes(message['tool_calls']) }) },
  }))
  const event = { ...answer, object: 'chat.completion.chunk', choices }
  return Buffer.from(`data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`)
}

function withIndexes(calls: readonly unknown[]): readonly unknown[] {
  return calls.map((call, index) => ({ ...(call as object), index }))
}

/** Collects a whole answer; `finish` hands it over as a stream. */
export function createStreamingHandler(handler: ChatAnswerHandler): ChatAnswerHandler & { finish(): void } {
  const chunks: Buffer[] = []
  let retryAfter: string | null = null
  return {
    onHead(head) {
      retryAfter = head.retryAfter
    },
    onData(chunk) {
      chunks.push(chunk)
      return true
    },
    finish() {
      const stream = toSingleEventStream(Buffer.concat(chunks))
      handler.onHead({ status: 200, contentType: 'text/event-stream; charset=utf-8', retryAfter })
      handler.onData(stream, () => {})
    },
  }
}
