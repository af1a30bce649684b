import type { GenerateRequest } from '@aworld-train/core'
import type { Constraint } from '@aworld-train/protocol'
import type { LabelledSpan } from './to-spans.ts'

export interface TokenCallContext {
  /** Name that the server knows the model or the adapter by. */
  readonly served: string
  readonly stopTokenIds: readonly number[]
  readonly maxTokens: number
  readonly seed: number
  /** Tokens to an event of the answer, where the server can be told. */
  readonly streamInterval: number
  readonly salt: string
}

/** What one event of an answer brings. */
export interface Piece {
  readonly tokenIds: ArrayLike<number>
  readonly logprobs: ArrayLike<number>
  readonly finish?: string | null | undefined
  readonly labels?: readonly LabelledSpan[] | null | undefined
  readonly cachedTokens?: number | undefined
}

/** The two sides of one route that takes token ids and streams token ids with logprobs. */
export interface TokenProtocol {
  readonly path: string
  /** Kinds of constraints that `encode` knows how to ask for. */
  readonly constraints: ReadonlySet<Constraint['kind']>
  /** Says more of an error that the route answered with; `undefined` where it says it all. */
  explain?(cause: unknown): Error | undefined
  encode(request: GenerateRequest, context: TokenCallContext): string
  /** Reads the events of one answer, in order; `null` for one that brings nothing. Throws POLICY_RESPONSE_INVALID and what the server itself reports. */
  createDecoder(server: string): (data: string) => Piece | null
}
