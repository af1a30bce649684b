import type { Constraint, GenerateRequest } from '@aworld-train/core'
import type { LabelledSpan } from './to-spans.ts'

export interface TokenCallContext {
  /** The server's name of the model or the adapter. */
  readonly served: string
  readonly stopTokenIds: readonly number[]
  readonly maxTokens: number
  readonly seed: number
  /** Tokens in one event of the answer, if the server has such a setting. */
  readonly streamInterval: number
  readonly salt: string
}

export interface CountedTokens {
  readonly prompt?: number | undefined
  readonly completion?: number | undefined
}

/** The content of one event of an answer. */
export interface Piece {
  readonly tokenIds: ArrayLike<number>
  readonly logprobs: ArrayLike<number>
  readonly finish?: string | null | undefined
  readonly labels?: readonly LabelledSpan[] | null | undefined
  readonly cachedTokens?: number | undefined
  /** Token counts of the server for the answer so far. */
  readonly counted?: CountedTokens | undefined
}

/** Encoder and decoder of one route that takes token ids and streams token ids with logprobs. */
export interface TokenProtocol {
  readonly path: string
  /** Kinds of constraints that `encode` can write. */
  readonly constraints: ReadonlySet<Constraint['kind']>
  /** Makes an error of the route more helpful; `undefined` if the server's own is enough. */
  explain?(cause: unknown): Error | undefined
  encode(request: GenerateRequest, context: TokenCallContext): string
  /** Reads the events of one answer, in order; `null` for an event without content. Throws POLICY_RESPONSE_INVALID, and errors that the server reports. */
  createDecoder(server: string): (data: string) => Piece | null
}
