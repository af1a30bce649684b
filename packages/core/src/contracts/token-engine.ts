import type { Constraint } from '../protocol/constraint.ts'
import type { Sampling } from '../protocol/sampling.ts'
import type { MixedVersions, WeightVersionSpan } from '../protocol/tokens.ts'
import type { FinishReason } from '../protocol/turn.ts'
import type { Engine } from './engine.ts'
import type { TraceHeaders } from './trace-headers.ts'

/** Position of a call in a run. Random numbers are a function of it and the token's position, never of arrival order. */
export interface RandomKey {
  readonly seed: number
  readonly task: string
  readonly sample: number
  /** Index of the model call among those of its agent, or a number of its prompt. */
  readonly turn: number
}

/** The attempt and the agent that a call belongs to. */
export interface CallOrigin {
  /** Key of the rollout. */
  readonly rollout: string
  readonly attempt: number
  readonly agent: string
  /** Id of the invocation. */
  readonly trajectory: string
}

export interface GenerateRequest {
  readonly promptTokenIds: Int32Array
  readonly sampling: Sampling
  /** The required form of the completion, of a kind in the engine's `constraints`. */
  readonly constraint?: Constraint | undefined
  readonly random: RandomKey
  /** The same value for all calls of a rollout. Engines keep its KV cache or its replica. */
  readonly affinity: string
  /** For engines that reach the policy through the trainer client that submitted the rollout. */
  readonly origin?: CallOrigin | undefined
  /** Name of the policy among those of one engine, such as a LoRA adapter. Absent for the base weights. */
  readonly policy?: string | undefined
  /** `traceparent` and `tracestate` (W3C Trace Context) for an engine that is another process. */
  readonly traceHeaders?: TraceHeaders | undefined
  /**
   * Called with each sampled piece; ids and logprobs have equal length. Every drawn token is handed over, also before an abort rejects.
   * `weightVersion` is the version that sampled the piece; without it, `weightVersion()` is read.
   */
  readonly onTokens?: (tokenIds: Int32Array, logprobs: Float32Array, weightVersion?: number) => void
}

export interface GenerateResult {
  /** Sampled ids, including the stop token if one was sampled. */
  readonly tokenIds: Int32Array
  /**
   * Natural log: log-softmax of logits / temperature before truncation (at temperature 0, of the bare logits); under a constraint, over the
   * tokens that it allows.
   */
  readonly logprobs: Float32Array
  readonly finishReason: FinishReason
  readonly weightVersions: readonly WeightVersionSpan[]
  /** Lowest and highest version that may have sampled. Set if an update fell into the call and the engine does not know at which token. */
  readonly mixedVersions?: MixedVersions | undefined
  readonly cachedTokens: number
}

/** Description of a policy: the folder of its tokenizer and template, and what its engine accepts. */
export interface ModelDescription {
  readonly name: string
  /** A Hugging Face folder: config.json, tokenizer.json, tokenizer_config.json. */
  readonly directory: string
  readonly contextLength: number
  readonly vocabularySize: number
  /** Ids that end a completion. */
  readonly stopTokenIds: readonly number[]
}

/** Samples tokens from token ids. An abort rejects with the signal's reason and frees the row. */
export interface TokenEngine extends Engine {
  readonly model: ModelDescription
  /** Kinds of constraints that the engine enforces. Default: none. A request with another kind is refused before it reaches the engine. */
  readonly constraints?: ReadonlySet<Constraint['kind']> | undefined
  generate(request: GenerateRequest, signal: AbortSignal): Promise<GenerateResult>
  /** Number of tokens sampled since the start, counted where they are drawn. */
  sampledTokens(): number
}
