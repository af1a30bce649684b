import type { MessagePort } from 'node:worker_threads'
import type { ErrorCode, TrainError } from '@aworld-train/protocol'

/** Whole numbers that say one turn of a batch: rollout and agent among the strings, attempt, index, parent (-1 for none), prefix, suffix and completion in tokens, body in bytes. */
export const fieldsOfLoggedTurn = 9

/** Turns that one thread hands another to make durable, as few objects as can be since cloning them is what a message costs. */
export interface TurnBatch {
  /** Strings that were not sent before, with the numbers that the turns give them. */
  readonly strings: readonly (readonly [number, string])[]
  /** Numbers whose strings are not used again. */
  readonly dropped: readonly number[]
  /** `fieldsOfLoggedTurn` a turn. */
  readonly turns: Int32Array
  /** Turns without their token arrays, as JSON in UTF-8, one behind the other. */
  readonly bodies: Uint8Array
  /** Of each turn, in little-endian: ids of the prompt behind the prefix (int32), completion ids (int32), logprobs (float32). */
  readonly tokens: Uint8Array
}

/** What a batch is answered with, in the order of the batches: the turns that were refused, by position; all others are durable. */
export interface TurnBatchReply {
  readonly failures: readonly { readonly turn: number; readonly code: ErrorCode; readonly message: string }[]
}

/** Makes turns durable that a thread hands over itself, so that the thread that serves calls does not see them. */
export interface TurnLog {
  /** A port that takes TurnBatch and answers TurnBatchReply; it may be given to another thread, which closes it. */
  connect(): MessagePort
}

/** Where the turns of one attempt are logged. */
export interface AttemptLog {
  readonly log: TurnLog
  readonly rollout: string
  readonly attempt: number
  /** A turn could not be made durable. */
  failed(error: TrainError): void
}
