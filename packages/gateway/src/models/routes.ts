import type { ChatModel } from '@aworld-train/chat'
import type { ChatEngine, TokenEngine } from '@aworld-train/core'

/** How answers of tools are cut for a policy: the part that is left out of one with more tokens; `null` leaves them whole. */
export interface ToolAnswerCut {
  readonly maxTokens: number | null
  readonly cut: 'head' | 'tail' | 'middle'
}

/** A policy that is given token ids: the gateway renders, parses and knows every token. */
export interface TokenRoute {
  readonly kind: 'token'
  readonly engine: TokenEngine
  /** The template and tokenizer. A function where they become ready later: until then it throws a retryable error, and no session opens. */
  readonly chat: ChatModel | (() => ChatModel)
  /** Names one of several policies of one engine, such as a LoRA adapter; the base weights where absent. */
  readonly policy?: string | undefined
  /** Rendered prompts of more bytes of UTF-8 are refused before they are encoded, as too long for the context; 16 a token of context by default. */
  readonly maxPromptBytes?: number | null | undefined
  /** Answers of tools that are too large for the context. */
  readonly toolAnswers?: ToolAnswerCut | undefined
  /** `tool-error`: an answer whose tool call cannot be read says so, and an agent of this project goes on. Default `answer`. */
  readonly malformedCalls?: 'answer' | 'tool-error' | undefined
}

/** A policy that renders on its own side and reports ids and logprobs: bytes pass through. */
export interface ChatRoute {
  readonly kind: 'chat'
  readonly engine: ChatEngine
}

/** US dollars for a million tokens. */
export interface FrozenPrice {
  readonly input: number
  readonly output: number
  /** Price of prompt tokens that the third party had in its cache; that of `input` where absent. */
  readonly cachedInput?: number | undefined
}

/** A model of a third party, which is never trained: its calls are recorded as text. */
export interface FrozenRoute {
  readonly kind: 'frozen'
  /** Base URL: the part before `/chat/completions`, `/responses` or `/messages`. */
  readonly baseUrl: string
  /** The API that it speaks. */
  readonly dialect: 'chat-completions' | 'responses' | 'messages'
  /** The name that the third party has for the model. */
  readonly model: string
  /** The key, or the environment variable that holds it; it never leaves the gateway but to `baseUrl`. */
  readonly apiKey?: string | { readonly env: string } | undefined
  /** Sent with every call, such as `anthropic-version`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly price?: FrozenPrice | undefined
  /** How often a call is repeated that was refused because of load (429, 502, 503, 504, 529); 2 by default. */
  readonly retries?: number | undefined
  /** Longest silence before and within an answer; 600,000 by default. */
  readonly timeoutMs?: number | undefined
  /** Calls under way at a time; unbounded by default. */
  readonly maxInFlight?: number | undefined
  /** File of recorded answers: `record` keeps every answer there, `replay` answers from it and sends nothing. */
  readonly cassette?: { readonly path: string; readonly mode: 'record' | 'replay' } | undefined
}

export type ModelRoute = TokenRoute | ChatRoute | FrozenRoute
