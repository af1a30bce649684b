import { type ChatAnswerHandler, type ChatCall, type ChatCallOutcome, type ChatEngine, TrainError } from '@aworld-train/core'
import { Pool } from 'undici'

export interface HttpChatEngine extends ChatEngine {
  /** A call reports the versions that were set between its start and its end. */
  setWeightVersion(version: number): void
  /** Number of calls that were sent and have not ended. */
  inFlight(): number
}

/** A chat engine over one server, without replicas, health or retries. */
export function httpChatEngine(url: string): HttpChatEngine {
  const pool = new Pool(url, { headersTimeout: 0, bodyTimeout: 0, connections: 2048 })
  let version = 0
  let inFlight = 0

  function send({ body, traceHeaders }: ChatCall, handler: ChatAnswerHandler, signal: AbortSignal): Promise<ChatCallOutcome> {
    signal.throwIfAborted()
    const before = version
    inFlight++
    const sent = new Promise<ChatCallOutcome>((resolve, reject) => {
      let abort = () => {}
      signal.addEventListener('abort', () => abort(), { once: true })
      pool.dispatch(
        { method: 'POST', path: '/v1/chat/completions', headers: { 'content-type': 'application/json', ...traceHeaders }, body },
        {
          onRequestStart(controller) {
            abort = () => controller.abort(signal.reason)
            if (signal.aborted) abort()
          },
          onResponseStart(_controller, status, headers) {
            const retryAfter = headers['retry-after']
            handler.onHead({
              status,
              contentType: String(headers['content-type'] ?? ''),
              retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
            })
          },
          onResponseData(controller, chunk) {
            if (!handler.onData(chunk, () => controller.resume())) controller.pause()
          },
          onResponseEnd() {
            const weightVersions = Array.from({ length: version - before + 1 }, (_, index) => before + index)
            resolve({ replica: url, weightVersions })
          },
          onResponseError(_controller, cause) {
            if (signal.aborted) reject(signal.reason)
            else reject(new TrainError('POLICY_UNAVAILABLE', `The connection to ${url} broke: ${cause.message}`, { cause }))
          },
        },
      )
    })
    return sent.finally(() => inFlight--)
  }

  return {
    name: 'double',
    model: { name: 'served', contextLength: 4096 },
    splice: ({ maxTokens, temperature }) =>
      `"max_tokens":${maxTokens},"temperature":${temperature},"logprobs":true,"return_token_ids":true`,
    logprobs: 'temperature',
    reader: new URL('./read-chat-answer.ts', import.meta.url),
    send,
    weightVersion: () => version,
    setWeightVersion(next) {
      version = next
    },
    inFlight: () => inFlight,
    close: () => pool.destroy(),
  }
}
