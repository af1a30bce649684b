import type { ReportedCompletion } from '@aworld-train/core'
import type { ErrorCode, Message } from '@aworld-train/protocol'

/** One answer whose bytes stand in the batch's buffer: the request's, then the answer's. */
export interface RecordRequest {
  readonly id: number
  /** The record that the call belongs to. */
  readonly record: number
  /** URL of the engine's reader module. */
  readonly reader: string
  readonly stream: boolean
  readonly contentType: string
  readonly offset: number
  readonly requestLength: number
  readonly answerLength: number
}

/** What the recorder thread is sent: answers in order of their end, and records that are no longer needed. */
export interface RecordBatch {
  readonly requests: readonly RecordRequest[]
  readonly bytes: Uint8Array
  readonly forgotten: readonly number[]
}

/** An answer as read, and where it stands among those of its record. */
export interface ReadTurn {
  readonly completion: ReportedCompletion
  /** The call that this one goes on from: its prompt and completion begin this prompt. */
  readonly parent: number | null
  /** Why there is no parent. */
  readonly branchReason: 'root' | 'no-match' | null
  readonly messagesDelta: readonly Message[]
}

export type RecordReply =
  | { readonly id: number; readonly turn: ReadTurn }
  | { readonly id: number; readonly error: { readonly code: ErrorCode; readonly message: string } }
