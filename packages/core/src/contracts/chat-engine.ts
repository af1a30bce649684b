import type { Message } from '../protocol/message.ts'
import type { LogprobKind, Sampling } from '../protocol/sampling.ts'
import type { WeightVersionSpan } from '../protocol/tokens.ts'
import type { FinishReason, Usage } from '../protocol/turn.ts'
import type { Engine } from './engine.ts'
import type { TraceHeaders } from './trace-headers.ts'

/** One Chat Completions call, as bytes. */
export interface ChatCall {
  /** The JSON body, sent unchanged and unparsed. */
  readonly body: Buffer
  /** Whether the client wants server-sent events. */
  readonly stream: boolean
  /** The same value for all calls of a rollout. They stay with one replica while it is healthy. */
  readonly affinity: string
  /** `traceparent` and `tracestate` (W3C Trace Context) to send along. */
  readonly traceHeaders?: TraceHeaders | undefined
}

/** Receives the answer as it arrives. No method may throw. */
export interface ChatAnswerHandler {
  /** Called once, before any data. */
  onHead(head: { readonly status: number; readonly contentType: string; readonly retryAfter: string | null }): void
  /** Returns `false` to make the engine wait until `resume` is called. */
  onData(chunk: Buffer, resume: () => void): boolean
}

/** The outcome of a call to a chat engine. The answer itself went to the handler. */
export interface ChatCallOutcome {
  /** The server that answered. */
  readonly replica: string
  /** Versions of the replica during its answer, in order; several if an update fell into the call. */
  readonly weightVersions: readonly number[]
}

/** The tokens of a recorded answer, as its server reports them. */
export interface ReportedCompletion {
  readonly promptTokenIds: Int32Array
  readonly completionTokenIds: Int32Array
  /** One logprob for each completion token. */
  readonly rolloutLogprobs: Float32Array
  readonly message: Message
  readonly finishReason: FinishReason
  /** Token counts of the server itself. Ids are counted only if it reports none. */
  readonly usage: Usage
  /** Weight versions of the tokens, if the server itself reports them. */
  readonly weightVersions?: readonly WeightVersionSpan[] | undefined
}

/**
 * A server that renders messages itself and reports token ids and logprobs. The gateway passes its bytes through unchanged. The module
 * named in `reader` reads the answers later, in another thread.
 */
export interface ChatEngine extends Engine {
  readonly model: { readonly name: string; readonly contextLength: number }
  /**
   * JSON members, without braces, to insert before the last brace of a request: the trainer's sampling, and the fields that make the server
   * report ids and logprobs. If a body has a name twice, the server reads the last.
   */
  readonly splice: (sampling: Sampling) => string
  readonly logprobs: LogprobKind
  /**
   * Module whose export `readAnswer(body, stream, broken)` converts the bytes of an answer to a ReportedCompletion. It throws
   * POLICY_RESPONSE_INVALID if ids or logprobs are missing or of unequal length.
   */
  readonly reader: URL
  /** Rejects with a TrainError if no answer was received, or with the signal's reason. */
  send(call: ChatCall, handler: ChatAnswerHandler, signal: AbortSignal): Promise<ChatCallOutcome>
}

/**
 * With `broken` the answer may be cut off. Its completion then consists of its whole events, and `broken` is the reason for its end, unless
 * the server has named one.
 */
export type ReadAnswer = (body: Uint8Array, stream: boolean, broken?: FinishReason | null) => ReportedCompletion
