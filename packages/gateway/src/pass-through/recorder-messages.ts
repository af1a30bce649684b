import type { ErrorCode, FinishReason, Message, Turn, Usage, WeightVersionSpan } from '@aworld-train/core'

/** An answer for the recorder thread to read. */
export interface AnswerToRead {
  readonly call: number
  /** Number of its record. Answers of one record may continue each other. */
  readonly record: number
  /** URL of the module that reads it. */
  readonly reader: string
  readonly stream: boolean
  /** The request in Chat Completions, as it was sent. */
  readonly request: Uint8Array<ArrayBuffer>
  readonly answer: Uint8Array<ArrayBuffer>
  /** Why the answer may stop in its middle. */
  readonly broken: FinishReason | null
}

/** A message to the recorder thread, to which the memory of the answers moves. */
export interface AnswerBatch {
  /** In the order in which the answers ended. */
  readonly answers: readonly AnswerToRead[]
  /** Records that get no more answers. */
  readonly forgotten: readonly number[]
}

/** A read answer, and its place among the turns of its record. */
export interface ReadTurn {
  /** The call that this one continues: its prompt and completion begin this prompt. */
  readonly parent: number | null
  /** Reason why there is no parent. */
  readonly branchReason: 'root' | 'no-match' | null
  /** Ids of the prompt after those of the parent. */
  readonly suffixTokenIds: Int32Array<ArrayBuffer>
  readonly completionTokenIds: Int32Array<ArrayBuffer>
  /** One for each completion token. */
  readonly rolloutLogprobs: Float32Array<ArrayBuffer>
  readonly messagesDelta: readonly Message[]
  readonly message: Message
  readonly finishReason: FinishReason
  readonly usage: Usage
  /** Versions of the weights that sampled each token, if the server reports them. */
  readonly weightVersions: readonly WeightVersionSpan[]
  /** Fields of the request that nothing else of the turn holds. */
  readonly unusedFields?: Turn['unusedFields']
}

/** The thread's reply to one answer of a batch; replies have the order of the answers. */
export type AnswerReply =
  | { readonly call: number; readonly turn: ReadTurn }
  | { readonly call: number; readonly error: { readonly code: ErrorCode; readonly message: string } }
