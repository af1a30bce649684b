import type { FinishReason, Message, ToolCall, ToolDefinition } from '@aworld-train/core'
import type { PrepareAsyncOptions } from './prepare-async.ts'

/** How to treat a request that rewrites the record: branch at every rewrite, only at a new user message, or never. */
export type HistoryMode = 'template' | 'loop' | 'as-sampled'

export interface LoadChatModelOptions {
  /** A Hugging Face folder: tokenizer.json, tokenizer_config.json, and the template there or in chat_template.jinja. */
  readonly directory: string
  /** Ids that end a completion of the engine. Default: those that the folder names. */
  readonly stopTokenIds?: readonly number[] | undefined
  /** Default `loop`. */
  readonly history?: HistoryMode | undefined
  /** Variables for every rendering, such as `{ enable_thinking: false }`. */
  readonly templateArguments?: Readonly<Record<string, unknown>> | undefined
  /** Clock of the probe's renderings. Default: a fixed day. Conversations have their own. */
  readonly now?: Date | undefined
}

/** Properties of one chat template, found by rendering small conversations when it is loaded. */
export interface TemplateProbe {
  /** Form in which the template takes a call's arguments. `none`: it does not print calls. */
  readonly arguments: 'object' | 'string' | 'none'
  /** Content beside calls if there is none. */
  readonly emptyContent: '' | null
  /** Whether text beside a call is printed in later prompts. */
  readonly contentWithCalls: boolean
  /** Field from which the template reads reasoning. `inline`: it stays in the content between think tags. `none`: it is always dropped. */
  readonly reasoningField: 'reasoning_content' | 'thinking' | 'inline' | 'none'
  readonly parallelCalls: 'all' | 'first' | 'raises' | 'none'
  /** Whether ids of calls are printed. */
  readonly idsInPrompt: boolean
  /** Form of ids that the template accepts; `any` for any text. */
  readonly idForm: 'any' | 'alphanumeric-9' | 'function-index'
  /** Whether the name of the tool is printed with its result. */
  readonly toolNameInResult: boolean
  readonly toolsPrinted: boolean
  /** The error that the template raised for every form of a call; `null` if it raised none. */
  readonly callError: string | null
  /** Whether user content must be a list of parts. */
  readonly contentParts: boolean
  readonly systemRole: boolean
  readonly developerRole: boolean
  /** Whether the generation prompt opens a reasoning block. */
  readonly reasoningOpen: boolean
  /** Text between the last sampled text and the first stop token, by kind of turn; `null` if no stop follows. */
  readonly closers: Readonly<Record<TurnKind, string | null>>
  /** Text of the stop token that closes a turn, by kind of turn. */
  readonly stops: Readonly<Record<TurnKind, string | null>>
  /** Text of the stop token after an answer that is the last message. History may close it with another. */
  readonly finalStop: string | null
  /** Name of the row in the table of tool-call syntaxes; `null` if calls are not parsed. */
  readonly syntax: string | null
  /** SHA-256 over the probe's renderings. A changed template has another one. */
  readonly digest: string
}

export type TurnKind = 'plain' | 'reasoning' | 'call' | 'calls'

/** Tokenizer, template and tool-call syntax of one model. It holds caches and needs no closing. */
export interface ChatModel {
  readonly tokenizerHash: string
  readonly templateHash: string
  readonly probe: TemplateProbe
  /** Warnings for a run: where this template rewrites earlier turns, and what that costs; none if it never does. */
  readonly historyNotes: readonly string[]
  /** Ids of `text`. Special tokens written in it are special; none is added. */
  encode(text: string): Int32Array
  decode(ids: Int32Array | readonly number[], options?: { skipSpecialTokens?: boolean }): string
  /** Creates the tree of one agent in one attempt. */
  createConversation(options?: ConversationOptions): Conversation
  /** Like `conversation.prepare(request)`, with texts of more than 2,048 characters encoded by the encoder instead of on the event loop. */
  prepareAsync(conversation: Pick<Conversation, 'prepare'>, request: PrepareRequest, options: PrepareAsyncOptions): Promise<PreparedPrompt>
  createCompletionParser(options: CompletionParserOptions): CompletionParser
  /**
   * The ids that the policy would sample to produce the last message, an assistant's, after those before it: the text that the template
   * writes after the prompt, including the stop token. Throws TEMPLATE_UNSUPPORTED if the template writes the message differently.
   */
  toCompletion(request: Pick<PrepareRequest, 'messages' | 'tools'>): Int32Array
}

export interface ConversationOptions {
  /** Time of the conversation's clock, which stands still. Default: the present. */
  readonly now?: Date | undefined
  /** Prompts whose rendered text has more bytes of UTF-8 are refused before they are encoded. Default: unlimited. */
  readonly maxPromptBytes?: number | undefined
  /**
   * Text that a client may change in its own messages from request to request. The prompt keeps that of the first request. Default: none.
   */
  readonly ignore?: readonly RegExp[] | undefined
}

export interface PrepareRequest {
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  /**
   * The array `tools` of a Chat Completions request, as it was written. With it the schemas are printed without loss (`1.0`, integer-like
   * keys in their order); otherwise they come from `tools`.
   */
  readonly toolsJson?: string | undefined
  /** A call that the policy must make. The prompt ends with the text that opens it. */
  readonly forced?: ForcedCall | undefined
  /** Whether nobody received the answer of a recorded turn. Of two equal turns the other one is continued. */
  readonly isAbandoned?: ((turn: number) => boolean) | undefined
  /** Whether a call that continues a recorded turn is being answered. Of two equal turns the other one is continued. */
  readonly isContinued?: ((turn: number) => boolean) | undefined
}

/** A call that the next turn must consist of: of any tool, or of the named one. */
export type ForcedCall = { readonly kind: 'required' } | { readonly kind: 'named'; readonly name: string }

/** The turns of one agent in one attempt: a tree that grows at `record`. */
export interface Conversation {
  /**
   * Prepares the prompt of the next turn: it continues the deepest recorded turn that the messages extend, or is a branch with its reasons.
   * Throws GATEWAY_BAD_REQUEST for messages that cannot be rendered, POLICY_CONTEXT_OVERFLOW for text above `maxPromptBytes`,
   * TEMPLATE_UNSUPPORTED for tools or a forced call that the template cannot write.
   */
  prepare(request: PrepareRequest): PreparedPrompt
  /** Adds the turn sampled after `prepared`. `tokenIds` includes the stop token if one was sampled. `message` is the delivered one. */
  record(turnIndex: number, prepared: PreparedPrompt, result: RecordedResult): void
}

export interface RecordedResult {
  readonly tokenIds: Int32Array
  readonly message: Message
  /** Whether the completion was cut by length, a stop string or an abort. It is only informative: the last id decides what is appended. */
  readonly truncated?: boolean | undefined
  /** Ids that the model sampled for its calls, if its syntax has them. Later prompts contain these and not the client's. */
  readonly promptCallIds?: readonly (string | null)[] | undefined
}

/** The first message in which a request differs from the recorded conversation whose answers it contains. */
export interface Divergence {
  readonly index: number
  readonly role: Message['role']
  /** The differing texts, from a little before the first difference, at most 80 characters each. */
  readonly recorded: string
  readonly received: string
}

export interface PreparedPrompt {
  /** Ids of the prompt. They may be a view of memory that the prompts of a branch share; do not write to them. */
  readonly promptTokenIds: Int32Array
  /** Index of the turn this one continues; `null` for a root or a branch. */
  readonly parent: number | null
  /** Reasons why this is not a continuation: `root`, or those of the skeleton rule; none for a continuation. */
  readonly branchReasons: readonly string[]
  /** Differences from the record that did not matter, by kind. */
  readonly tolerated: Readonly<Record<string, number>>
  /** Messages that the conversation of `parent` lacks; all of them if it is `null`. */
  readonly messagesDelta: readonly Message[]
  /** Whether the prompt ends inside an open reasoning block. */
  readonly reasoningOpen: boolean
  /** A trailing assistant message. Its tokens end the prompt, and sampling continues it. */
  readonly prefill: Message | null
  /** Text that opens a forced call, after the prefill. Its tokens end the prompt. */
  readonly forced: string
  /** Set if a request contains a recorded answer after other messages than were recorded. */
  readonly divergence: Divergence | null
  /** The deepest recorded turn that the messages extend, continued or not. */
  readonly matched: number | null
  /** The messages without prefill, and the rendering up to prefill with marks in place of sampled texts. `record` keeps both. */
  readonly messages: readonly Message[]
  readonly skeleton: readonly string[]
}

export interface CompletionParserOptions {
  readonly tools: readonly ToolDefinition[]
  readonly prompt: PreparedPrompt
  /** Stop strings. The text before the first of them is delivered. */
  readonly stop?: readonly string[] | undefined
  /** Text of `forcedPrefix`, whose ids end the prompt. Sampling continues inside that call. */
  readonly forced?: string | undefined
  readonly mintToolCallId: (index: number) => string
}

export type CompletionDelta =
  | { readonly type: 'content'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'tool-call'; readonly call: ToolCall; readonly index: number }

export interface ParsedCompletion {
  /** The deltas that had been held back. */
  readonly deltas: readonly CompletionDelta[]
  readonly message: Message
  /** `tool-calls` if calls were parsed and the engine really stopped. */
  readonly finishReason: FinishReason['unified']
  /**
   * Problems of the calls. Calls delivered as content: `call-invalid`, `call-unclosed`, `open-missing`; as reasoning: `call-in-reasoning`;
   * as calls nevertheless: `close-missing`; not at all: `parallel-call-dropped`.
   */
  readonly issues: readonly string[]
  /** For each call of `message`, the id that the model wrote, which is rendered again; `null` if it wrote none. */
  readonly promptCallIds: readonly (string | null)[]
}

/** Turns sampled ids into deltas. It holds back incomplete UTF-8, possible markers and possible stop strings. */
export interface CompletionParser {
  push(tokenIds: Int32Array): readonly CompletionDelta[]
  /** Whether a stop string was found. Later ids are then ignored. */
  readonly stopped: boolean
  finish(raw: { readonly unified: FinishReason['unified'] }): ParsedCompletion
}

export interface TemplateCheck {
  /** Sentences that name each problem and its remedy; none if the folder can be used. */
  readonly problems: readonly string[]
  readonly probe: TemplateProbe | null
  /** Reasons why a request branches, by scenario and history mode; none if it continues. */
  readonly branches: Readonly<Record<string, Readonly<Record<HistoryMode, readonly string[]>>>>
}
