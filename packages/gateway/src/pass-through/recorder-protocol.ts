import type { ReportedCompletion } from '@aworld-train/core'
import type { ErrorCode, Message } from '@aworld-train/protocol'

/** Whole numbers that say one answer: its call and record, its reader and content type among the strings, and two lengths in bytes. */
export const fieldsOfAnswer = 6

/** One answer: the bytes of the request and the answer follow those of the answer before. */
export interface RecordedBytes {
  readonly call: number
  /** Calls of one record are matched with each other. */
  readonly record: number
  /** URL of the engine's reader module. */
  readonly reader: string
  readonly contentType: string
  readonly request: Uint8Array
  readonly answer: Uint8Array
}

/**
 * What the recorder thread is sent: answers in the order of their end, as few objects as can be since cloning them is
 * what a message costs.
 */
export interface RecordBatch {
  /** `fieldsOfAnswer` an answer. */
  readonly answers: Int32Array
  /** Shared; the sender's again when the replies have come. */
  readonly bytes: Uint8Array
  /** Strings that were not sent before; their indexes go on from those that were. */
  readonly strings: readonly string[]
  /** Records that will not be added to. */
  readonly forgotten: readonly number[]
}

/** An answer as read, and where it stands among those of its record. */
export interface ReadTurn {
  readonly call: number
  readonly completion: ReportedCompletion
  /** The call that this one goes on from: its prompt and completion begin this prompt. */
  readonly parent: number | null
  /** Why there is no parent. */
  readonly branchReason: 'root' | 'no-match' | null
  readonly messagesDelta: readonly Message[]
}

/** A turn without its tokens, whose numbers are counted here. */
export interface TurnHead extends Omit<ReadTurn, 'completion'> {
  /** Prompt ids behind those of the parent's prompt and completion. */
  readonly suffixTokens: number
  readonly completionTokens: number
  readonly completion: Omit<ReportedCompletion, 'promptTokenIds' | 'completionTokenIds' | 'rolloutLogprobs' | 'repeatedTokens'>
}

export type ReplyHead = TurnHead | { readonly call: number; readonly error: { readonly code: ErrorCode; readonly message: string } }

/** What the thread answers to each batch, in their order. */
export interface RecordReplies {
  /** A list of ReplyHead as JSON: cheaper to read than to clone. */
  readonly heads: string
  /** Of each head that is a turn, one behind the other: ids of the suffix and of the completion. */
  readonly ids: Int32Array
  readonly logprobs: Float32Array
}
