import type { ChatModel } from '@aworld-train/chat'
import type { ChatEngine, TokenEngine } from '@aworld-train/core'

/** How long tool answers are cut for a policy: the part that is left out beyond `maxTokens`; `null` leaves them whole. */
export interface ToolAnswerCut {
  readonly maxTokens: number | null
  readonly cut: 'head' | 'tail' | 'middle'
}

/** A policy that takes token ids. The gateway renders, parses and knows every token. */
export interface TokenRoute {
  readonly kind: 'token'
  readonly engine: TokenEngine
  /**
   * The template and tokenizer. It is a function if they become ready later; until then it throws a retryable error, and no session opens.
   */
  readonly chat: ChatModel | (() => ChatModel)
  /** Name of one of several policies of an engine, such as a LoRA adapter; the base weights if absent. */
  readonly policy?: string | undefined
  /**
   * Rendered prompts of more bytes of UTF-8 are refused before they are encoded, as too long for the context.
   * Default: 16 for each token of context.
   */
  readonly maxPromptBytes?: number | null | undefined
  /** Limit for tool answers that are too large for the context. */
  readonly toolAnswers?: ToolAnswerCut | undefined
  /** `tool-error`: an answer with an unreadable tool call says so, and an agent of this project goes on. Default `answer`. */
  readonly malformedCalls?: 'answer' | 'tool-error' | undefined
}

/** A policy whose server renders prompts and reports ids and logprobs. Bytes pass through. */
export interface ChatRoute {
  readonly kind: 'chat'
  readonly engine: ChatEngine
}

/** US dollars for a million tokens. */
export interface FrozenPrice {
  readonly input: number
  readonly output: number
  /** Price of prompt tokens that the third party had in its cache; that of `input` if absent. */
  readonly cachedInput?: number | undefined
}

/** A model of a third party. It is never trained, and its calls are recorded as text. */
export interface FrozenRoute {
  readonly kind: 'frozen'
  /**
   * Whether it is evaluated in place of a policy: its calls are turns of the rollout, its answers count toward the limit of sampled tokens,
   * a full context ends the rollout, and agents that are declared trainable may have it. Default `false`.
   */
  readonly evaluated?: boolean | undefined
  /** Base URL: the part before `/chat/completions`, `/responses` or `/messages`. */
  readonly baseUrl: string
  /** The API that it speaks. */
  readonly dialect: 'chat-completions' | 'responses' | 'messages'
  /** The third party's name for the model. */
  readonly model: string
  /** Whether an answer that names another model, or none, is refused. Default `false`: another name is said once. */
  readonly exactModel?: boolean | undefined
  /** The key, or the environment variable that holds it. The gateway sends it only to `baseUrl`. */
  readonly apiKey?: string | { readonly env: string } | undefined
  /** Headers of every call, such as `anthropic-version`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly price?: FrozenPrice | undefined
  /** How often a call is repeated that was refused for load (429, 529) or found the server away (502, 503, 504). Default 2. */
  readonly retries?: number | undefined
  /**
   * How long a call waits in all while the third party refuses calls for load: by 429, 529, or by 502 to 504 with `Retry-After`. The calls of
   * the model wait together, and the clocks of their rollouts stand. `Infinity` waits until the run is stopped. Default: as long as `retries`
   * repetitions take.
   */
  readonly patienceMs?: number | undefined
  /** Longest silence before and within an answer. Default 600,000. */
  readonly timeoutMs?: number | undefined
  /** Most calls under way at once; unbounded by default. */
  readonly maxInFlight?: number | undefined
  /** File of recorded answers. `record` keeps every answer there; `replay` answers from it and sends nothing. */
  readonly cassette?: { readonly path: string; readonly mode: 'record' | 'replay' } | undefined
}

export type ModelRoute = TokenRoute | ChatRoute | FrozenRoute
