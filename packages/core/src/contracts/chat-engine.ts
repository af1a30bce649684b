import type { FinishReason, LogprobKind, Message, Sampling, Usage, WeightVersionSpan } from '@aworld-train/protocol'
import type { Engine } from './engine.ts'
import type { TraceHeaders } from './trace-headers.ts'

/** One Chat Completions call, as bytes. */
export interface ChatCall {
  /** The JSON body, sent as it is; nothing of it is parsed on the way. */
  readonly body: Buffer
  /** The client wants server-sent events. */
  readonly stream: boolean
  /** Same value for all calls of a rollout: they stay with one replica while it is well. */
  readonly affinity: string
  /** `traceparent` and `tracestate` (W3C Trace Context) to send along. */
  readonly traceHeaders?: TraceHeaders | undefined
}

/** Hears the answer as it comes; no method may throw. */
export interface ChatAnswerHandler {
  /** Once, before any data. */
  onHead(head: { readonly status: number; readonly contentType: string; readonly retryAfter: string | null }): void
  /** `false` asks the engine to wait until `resume` is called. */
  onData(chunk: Buffer, resume: () => void): boolean
}

/** How a call to a chat engine was carried out; the answer itself went to the handler. */
export interface ChatCallOutcome {
  /** Which of several servers answered. */
  readonly replica: string
  /** Versions that the replica had while it answered, in order; two or more where an update fell into the call. */
  readonly weightVersions: readonly number[]
}

/** What a recorded answer says of its tokens. */
export interface ReportedCompletion {
  readonly promptTokenIds: Int32Array
  readonly completionTokenIds: Int32Array
  /** One a completion token. */
  readonly rolloutLogprobs: Float32Array
  readonly message: Message
  readonly finishReason: FinishReason
  /** Tokens as the server itself counts them; their ids are counted only where it does not. */
  readonly usage: Usage
  /** Where the server itself says which weights sampled which token. */
  readonly weightVersions?: readonly WeightVersionSpan[] | undefined
}

/**
 * A server that renders messages itself and reports token ids and logprobs. Its bytes pass through the gateway as they are; what is needed
 * of an answer is read later, in another thread, by the module named in `reader`.
 */
export interface ChatEngine extends Engine {
  readonly model: { readonly name: string; readonly contextLength: number }
  /**
   * JSON members, without braces, to put before the last brace of a request: the trainer's sampling, and what makes the server
   * report ids and logprobs. Where a body has a name twice, the server reads the last.
   */
  readonly splice: (sampling: Sampling) => string
  readonly logprobs: LogprobKind
  /**
   * Module whose export `readAnswer(body, stream, broken)` makes a ReportedCompletion of the bytes of an answer; it throws
   * POLICY_RESPONSE_INVALID where ids or logprobs are missing or of unequal length.
   */
  readonly reader: URL
  /** Rejects with a TrainError when no answer could be had, or with the signal's reason. */
  send(call: ChatCall, handler: ChatAnswerHandler, signal: AbortSignal): Promise<ChatCallOutcome>
}

/**
 * With `broken` the answer may stop in its middle. Its completion is then what its whole events hold, and `broken` is the reason
 * why it ended, unless the server has named one.
 */
export type ReadAnswer = (body: Uint8Array, stream: boolean, broken?: FinishReason | null) => ReportedCompletion
