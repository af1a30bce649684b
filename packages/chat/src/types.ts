import type { FinishReason, Message, ToolCall, ToolDefinition } from '@aworld-train/protocol'
import type { PrepareAsyncOptions } from './prepare-async.ts'

/** When a request rewrites what was recorded: branch at every rewrite, only at a new user message, or never. */
export type HistoryMode = 'template' | 'loop' | 'as-sampled'

export interface LoadChatModelOptions {
  /** A Hugging Face folder: tokenizer.json, tokenizer_config.json, and the template there or in chat_template.jinja. */
  readonly directory: string
  /** Ids that end a completion of the engine; those that the folder names by default. */
  readonly stopTokenIds?: readonly number[] | undefined
  /** Default `loop`. */
  readonly history?: HistoryMode | undefined
  /** Variables for every rendering, such as `{ enable_thinking: false }`. */
  readonly templateArguments?: Readonly<Record<string, unknown>> | undefined
  /** Clock of the probe's renderings, a fixed day by default; conversations have their own. */
  readonly now?: Date | undefined
}

/** What one chat template accepts and prints, found by rendering small conversations when it is loaded. */
export interface TemplateProbe {
  /** The form in which the template takes a call's arguments; `none`: it does not print calls. */
  readonly arguments: 'object' | 'string' | 'none'
  /** Content beside calls when there is none. */
  readonly emptyContent: '' | null
  /** Whether text beside a call is printed in later prompts. */
  readonly contentWithCalls: boolean
  /** Field a template reads reasoning from; `inline`: it stays in the content between think tags; `none`: always dropped. */
  readonly reasoningField: 'reasoning_content' | 'thinking' | 'inline' | 'none'
  readonly parallelCalls: 'all' | 'first' | 'raises' | 'none'
  /** Whether ids of calls are printed. */
  readonly idsInPrompt: boolean
  /** `any`: any text will do; otherwise the form of id the template accepts. */
  readonly idForm: 'any' | 'alphanumeric-9' | 'function-index'
  /** Whether the name of the tool is printed with its result. */
  readonly toolNameInResult: boolean
  readonly toolsPrinted: boolean
  /** The error that the template raised for every form of a call; `null` where it raised none. */
  readonly callError: string | null
  /** Whether user content must be a list of parts. */
  readonly contentParts: boolean
  readonly systemRole: boolean
  readonly developerRole: boolean
  /** Whether the generation prompt opens a reasoning block. */
  readonly reasoningOpen: boolean
  /** Text between the last sampled text and the first stop token, by kind of turn; `null` where no stop follows. */
  readonly closers: Readonly<Record<TurnKind, string | null>>
  /** Text of the stop token that closes a turn, by kind of turn. */
  readonly stops: Readonly<Record<TurnKind, string | null>>
  /** Text of the stop token behind an answer that is the last message; history may close it with another. */
  readonly finalStop: string | null
  /** Name of the row of the table of tool-call syntaxes; `null`: calls are not parsed. */
  readonly syntax: string | null
  /** SHA-256 over the probe's renderings: a changed template gives another. */
  readonly digest: string
}

export type TurnKind = 'plain' | 'reasoning' | 'call' | 'calls'

/** Tokenizer, template and tool-call syntax of one model; holds caches, nothing to close. */
export interface ChatModel {
  readonly tokenizerHash: string
  readonly templateHash: string
  readonly probe: TemplateProbe
  /** Warnings for a run: where this template rewrites earlier turns, and what that costs. Empty where it never does. */
  readonly historyNotes: readonly string[]
  /** Ids of `text`; special tokens written in it are special, none is added. */
  encode(text: string): Int32Array
  decode(ids: Int32Array | readonly number[], options?: { skipSpecialTokens?: boolean }): string
  /** The tree of one agent in one attempt. */
  createConversation(options?: ConversationOptions): Conversation
  /** `conversation.prepare(request)`, with texts of more than 2,048 characters encoded by the encoder instead of on the event loop. */
  prepareAsync(conversation: Conversation, request: PrepareRequest, options: PrepareAsyncOptions): Promise<PreparedPrompt>
  createCompletionParser(options: CompletionParserOptions): CompletionParser
  /**
   * The ids that the policy would sample to produce the last message, an assistant's, after those before it: the text that the
   * template writes behind the prompt, including the stop token. Throws TEMPLATE_UNSUPPORTED where it writes the message in another way.
   */
  toCompletion(request: Pick<PrepareRequest, 'messages' | 'tools'>): Int32Array
}

export interface ConversationOptions {
  /** The time of the conversation's clock, which stands still; the present by default. */
  readonly now?: Date | undefined
  /** Prompts whose rendered text has more bytes of UTF-8 are refused before they are encoded; unbounded by default. */
  readonly maxPromptBytes?: number | undefined
  /** Text that a client may change in its own messages from request to request; that of the first request stays in the prompt. None by default. */
  readonly ignore?: readonly RegExp[] | undefined
}

export interface PrepareRequest {
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  /**
   * The array `tools` of a Chat Completions request as it was written. With it the schemas are printed losslessly
   * (`1.0`, integer-like keys in their order); without it from `tools`.
   */
  readonly toolsJson?: string | undefined
  /** A call that the policy must make: the prompt ends with the text that opens it. */
  readonly forced?: ForcedCall | undefined
  /** Whether nobody received the answer of a recorded turn: of two equal turns the other one is continued. */
  readonly isAbandoned?: ((turn: number) => boolean) | undefined
}

/** A call that the next turn must consist of: of any tool, or of the named one. */
export type ForcedCall = { readonly kind: 'required' } | { readonly kind: 'named'; readonly name: string }

/** The turns of one agent in one attempt: a tree that grows at `record`. */
export interface Conversation {
  /**
   * The prompt of the next turn: the deepest recorded turn that the messages extend, continued, or a branch with its reasons.
   * Throws GATEWAY_BAD_REQUEST for messages that cannot be rendered, POLICY_CONTEXT_OVERFLOW for
   * text above `maxPromptBytes`, TEMPLATE_UNSUPPORTED for tools or a forced call that the
   * template cannot write.
   */
  prepare(request: PrepareRequest): PreparedPrompt
  /** Adds the turn sampled after `prepared`. `tokenIds` holds the stop token where one was sampled; `message` is as delivered. */
  record(turnIndex: number, prepared: PreparedPrompt, result: RecordedResult): void
}

export interface RecordedResult {
  readonly tokenIds: Int32Array
  readonly message: Message
  /** Whether the completion was cut by length, a stop string or an abort. It is informative: the last id decides what is appended. */
  readonly truncated?: boolean | undefined
  /** Ids that the model sampled for its calls, where its syntax has them: they, not the client's, stand in later prompts. */
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
  /** May be a view of a larger memory that the prompts of a branch share; do not write to it. */
  readonly promptTokenIds: Int32Array
  /** Index of the turn this one continues; `null` for a root or a branch. */
  readonly parent: number | null
  /** Why this is not a continuation: `root`, or the reasons of the skeleton rule; empty for a continuation. */
  readonly branchReasons: readonly string[]
  /** Differences from the record that did not matter, by kind. */
  readonly tolerated: Readonly<Record<string, number>>
  /** Messages that the conversation of `parent` does not have; all of them where it is `null`. */
  readonly messagesDelta: readonly Message[]
  /** Whether the prompt ends inside an open reasoning block. */
  readonly reasoningOpen: boolean
  /** A trailing assistant message: its tokens end the prompt, and what is sampled goes on from it. */
  readonly prefill: Message | null
  /** Text that opens a forced call, behind prefill: its tokens end the prompt. */
  readonly forced: string
  /** Set where a request contains a recorded answer, but other messages before it than were recorded. */
  readonly divergence: Divergence | null
  /** The deepest recorded turn that the messages extend, continued or not. */
  readonly matched: number | null
  /** The messages without prefill, and the rendering with sampled texts replaced by marks, up to prefill: what `record` keeps. */
  readonly messages: readonly Message[]
  readonly skeleton: readonly string[]
}

export interface CompletionParserOptions {
  readonly tools: readonly ToolDefinition[]
  readonly prompt: PreparedPrompt
  /** Stop strings: the text before the first of them is delivered. */
  readonly stop?: readonly string[] | undefined
  /** Text of `forcedPrefix`, whose ids end the prompt: what is sampled goes on inside that call. */
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
  /** `tool-calls` when calls were parsed and the engine really stopped. */
  readonly finishReason: FinishReason['unified']
  /**
   * Problems of the calls. Calls delivered as content: `call-invalid`, `call-unclosed`, `open-missing`; as reasoning:
   * `call-in-reasoning`; as calls all the same: `close-missing`; not at all: `parallel-call-dropped`.
   */
  readonly issues: readonly string[]
  /** By call of `message`: the id that the model wrote, which is the one to render again; `null` where it wrote none. */
  readonly promptCallIds: readonly (string | null)[]
}

/** Turns sampled ids into deltas; holds back incomplete UTF-8, possible markers and possible stop strings. */
export interface CompletionParser {
  push(tokenIds: Int32Array): readonly CompletionDelta[]
  /** Whether a stop string was found; later ids are ignored. */
  readonly stopped: boolean
  finish(raw: { readonly unified: FinishReason['unified'] }): ParsedCompletion
}

export interface TemplateCheck {
  /** Sentences naming what is wrong and what to do; empty when the folder can be used. */
  readonly problems: readonly string[]
  readonly probe: TemplateProbe | null
  /** By scenario and history mode: the reasons for which a request branches; empty where it continues. */
  readonly branches: Readonly<Record<string, Readonly<Record<HistoryMode, readonly string[]>>>>
}
