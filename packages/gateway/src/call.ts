import type { CompletionDelta } from '@aworld-train/chat'
import type { Constraint, FinishReason, Message, ToolDefinition, Usage } from '@aworld-train/core'
import type { Oddity } from './dialects/history-oddities.ts'
import type { ResponseMemory } from './dialects/responses/memory.ts'
import type { HttpFailure } from './failure.ts'

/** A client's wish for tool calls. The prompt always names all tools, because otherwise the next turn could not continue this one. */
export interface ToolChoice {
  /** `none`: a sampled call is delivered as text. `required`, `named`: the completion begins inside a call. */
  readonly kind: 'auto' | 'none' | 'required' | 'named'
  /** The tool to call if the kind is `named`; it is always one of the call's tools. */
  readonly name?: string | undefined
  /** `false`: only the first call is delivered. */
  readonly parallel: boolean
  /** Calls of other tools are not delivered; absent where every tool may be called. */
  readonly allowed?: readonly string[] | undefined
}

/** Sampling that the agent asks for. The trainer decides, unless the run lets the agent. Values of a wrong type are left out. */
export interface RequestedSampling {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly seed?: number
}

/** An output form that a request asks for. */
export interface RequestedConstraint {
  readonly form: Constraint
  /** The field of the request that asks for it. */
  readonly param: string
  /** Whether the client wants the form enforced strictly; our own engines always do so. */
  readonly strict: boolean
}

/** Logprobs that a request asks for. */
export interface RequestedLogprobs {
  /** The field of the request that asks for it. */
  readonly param: string
  /** Alternatives to each sampled token, with their logprobs. */
  readonly top: number
}

/** One model call, decoded from any dialect. */
export interface ModelCall {
  /** The model as the request names it; `null` where it does not. */
  readonly model: string | null
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  /** The tools in the form of Chat Completions, with schemas as they were written, for a lossless rendering. */
  readonly toolsJson: string | undefined
  /** Tools whose input is plain text; in the prompt they are functions with one string parameter, `input`. */
  readonly customTools: ReadonlySet<string>
  /** Types of tools and items that only a provider's server runs. No prompt holds them. */
  readonly hosted: readonly string[]
  readonly toolChoice: ToolChoice
  readonly stream: boolean
  /** The agent's limit, which may only lower the trainer's; `null` where the request has none. */
  readonly maxTokens: number | null
  readonly stop: readonly string[]
  /** The form of the answer's text; a tool call has its own. */
  readonly constraint?: RequestedConstraint | undefined
  /** Oddities of the history, counted by kind. The history is served as it stands. */
  readonly oddities: readonly Oddity[]
  readonly requestedSampling: RequestedSampling
  /** Names of fields that have no effect here, from a closed list; all others are `other`. */
  readonly ignored: readonly string[]
  /** Fields that have no effect here, by their own names, each with its JSON as it was written, for the record. */
  readonly unusedFields: Readonly<Record<string, string>>
  readonly wants: {
    readonly logprobs: RequestedLogprobs | null
    readonly tokenIds: boolean
    /** Whether a stream ends with an event that has the usage. */
    readonly streamUsage: boolean
  }
}

/** Fields that every part of an answer carries. */
export interface AnswerHead {
  /** Unique in the gateway. A dialect puts its own prefix before it. */
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  readonly model: string
  readonly call: ModelCall
  readonly promptTokenIds: Int32Array
  /** Text of one id, special tokens included. */
  readonly tokenText: (id: number) => string
  /** Keeps answers for later calls of the same agent. */
  readonly memory: ResponseMemory
}

/** A finished completion, ready for a dialect. */
export interface Completion {
  readonly message: Message
  readonly finishReason: FinishReason
  readonly tokenIds: Int32Array
  readonly logprobs: Float32Array
  readonly usage: Usage
  /** The entries of `logprobs` as a server wrote them, where there are some. */
  readonly logprobEntries?: readonly object[] | undefined
  /** The stop string of the agent that ended the completion. */
  readonly stopSequence?: string | undefined
  /** Whether the completion is an unreadable call, which the agent is told about. */
  readonly isMalformedCall?: boolean | undefined
}

/** One piece of a stream: the text and calls that the parser released, and the tokens sampled since the last piece. */
export interface StreamPiece {
  readonly deltas: readonly CompletionDelta[]
  readonly tokenIds: ArrayLike<number>
  readonly logprobs: ArrayLike<number>
  /** The entries of `logprobs` as a server wrote them, where there are some. */
  readonly logprobEntries?: readonly object[] | undefined
}

/** Encodes one answer as a stream. It holds the state of one call, and each method returns text for the socket. */
export interface StreamEncoder {
  start(): string
  /** The events of a piece; empty where a piece shows nothing. */
  piece(piece: StreamPiece): string
  end(completion: Completion): string
  /** The last event of a failed stream, whether or not its answer had begun. */
  fail(failure: HttpFailure): string
}

/** A model as it is listed. */
export interface ListedModel {
  readonly id: string
  /** `null` where it is not known. */
  readonly contextLength: number | null
}

/** An API that agents speak: a row of the table of dialects. */
export interface Dialect {
  readonly name: string
  /** Path after `/v1`. */
  readonly path: string
  /** Name of the header that holds the request's id in every answer. */
  readonly requestIdHeader: string
  /**
   * Throws GATEWAY_BAD_REQUEST or GATEWAY_INPUT_UNSUPPORTED naming the field. `json` is the text that `body` was parsed
   * from, and `memory` holds earlier answers that the request may refer to.
   */
  decode(body: unknown, json: string, memory: ResponseMemory): ModelCall
  encode(head: AnswerHead, completion: Completion): string
  createStream(head: AnswerHead): StreamEncoder
  /** An event that clients skip. */
  readonly streamComment: string
  /** The body of an answer that failed. */
  encodeFailure(failure: HttpFailure): string
  /** The only event of a stream that failed before its answer began. */
  encodeStreamFailure(failure: HttpFailure): string
  encodeModel(model: ListedModel): string
  /** Throws GATEWAY_BAD_REQUEST for a query that asks for no page. */
  encodeModels(models: readonly ListedModel[], query: URLSearchParams): string
}
