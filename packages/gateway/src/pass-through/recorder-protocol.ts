import type { MessagePort } from 'node:worker_threads'
import type { ReportedCompletion } from '@aworld-train/core'
import type { ErrorCode, FinishReason, Message } from '@aworld-train/protocol'

/**
 * Numbers that say one answer: its call and record, its reader, content type, logprobs and sampling among the strings, three
 * lengths in bytes (that of the request `-1 - index` where it is among the requests), when it began and ended, the lowest and highest version of the weights meanwhile, whether it was abandoned,
 * and among the strings why it stops in its middle, as JSON (-1 where it does not).
 */
export const fieldsOfAnswer = 15

/** One answer: the bytes of the request, of its unused fields and of the answer follow those of the answer before. */
export interface RecordedBytes {
  /** Index of its turn in its record. */
  readonly index: number
  readonly contentType: string
  readonly request: Uint8Array
  /** Fields that the request had in another dialect, by name, as JSON; empty where it came as it is. */
  readonly unusedFields: Uint8Array
  readonly answer: Uint8Array
  /** Why the answer may stop in its middle. */
  readonly broken: FinishReason | null
}

/** A record as the thread hears of it, before its first answer. */
export interface OpenedRecord {
  readonly record: number
  readonly agent: string
  readonly attempt: number
  /** Where it is not the policy of the rollout. */
  readonly model: string | undefined
  /** Turns that it has already. */
  readonly turns: number
  /** Where its turns are made durable, of the logs that were sent. */
  readonly log: { readonly number: number; readonly rollout: string; readonly attempt: number } | null
}

/**
 * What the recorder thread is sent: answers in the order of their end, as few objects as can be since cloning them is
 * what a message costs.
 */
export interface RecordBatch {
  /** `fieldsOfAnswer` an answer. */
  readonly answers: Float64Array
  /** In memory that moves there, and back with the replies. */
  readonly bytes: Uint8Array
  /** Requests in memory of their own, which moves too. */
  readonly requests: readonly Uint8Array[]
  /** Strings that were not sent before; their indexes go on from those that were. */
  readonly strings: readonly string[]
  /** Samplings of this batch, as JSON. */
  readonly samplings: readonly string[]
  readonly opened: readonly OpenedRecord[]
  /** Ports of logs that were not sent before; their numbers go on from those that were. */
  readonly logs: readonly MessagePort[]
  /** Records that will not be added to. */
  readonly forgotten: readonly number[]
}

/** An answer as read, and where it stands among those of its record. */
export interface ReadTurn {
  readonly completion: ReportedCompletion
  /** Index of the turn that this one goes on from: its prompt and completion begin this prompt. */
  readonly parent: number | null
  /** How many of the prompt ids those are. */
  readonly prefixTokens: number
  /** Why there is no parent. */
  readonly branchReason: 'root' | 'no-match' | null
  readonly messagesDelta: readonly Message[]
  readonly unusedFields: Readonly<Record<string, string>>
}

/** Why there is no parent, by number; 0 is a continuation. */
export const branchReasons = [null, 'root', 'no-match'] as const

/** Whole numbers that say one turn: call, index in its record, parent (-1 for none), branch reason, tokens of prefix, suffix and completion, cached tokens, whether it was cut by length, bytes of its body. */
export const fieldsOfReply = 10

/** What the thread answers to each batch, in their order, when the turns that are logged are durable. */
export interface RecordReplies {
  /** `fieldsOfReply` a turn. */
  readonly turns: Int32Array
  /** Of each turn, one behind the other: the turn without its token arrays, as JSON in UTF-8. */
  readonly bodies: Uint8Array
  /** Of each turn, one behind the other: ids of the suffix and of the completion, and the bits of the logprobs. */
  readonly tokens: Int32Array
  /** Answers that are no turns, or whose turn was refused by its log, which is among the turns all the same. */
  readonly errors: readonly { readonly call: number; readonly code: ErrorCode; readonly message: string; readonly logged: boolean }[]
  /** What the batch was in. */
  readonly memory: readonly ArrayBuffer[]
}
