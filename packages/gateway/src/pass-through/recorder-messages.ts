import type { ErrorCode, FinishReason, Message, Turn, Usage, WeightVersionSpan } from '@aworld-train/protocol'

/** An answer for the recorder thread to read. */
export interface AnswerToRead {
  readonly call: number
  /** The number of its record; answers of one record may continue each other. */
  readonly record: number
  /** Address of the module that reads it. */
  readonly reader: string
  readonly stream: boolean
  /** The request in Chat Completions, as it was sent. */
  readonly request: Uint8Array<ArrayBuffer>
  readonly answer: Uint8Array<ArrayBuffer>
  /** Why the answer may stop in its middle. */
  readonly broken: FinishReason | null
}

/** A message to the recorder thread; the memory of the answers moves to it. */
export interface AnswerBatch {
  /** In the order of their end. */
  readonly answers: readonly AnswerToRead[]
  /** Records that no answer is added to any more. */
  readonly forgotten: readonly number[]
}

/** A read answer, and its place among the turns of its record. */
export interface ReadTurn {
  /** The call that this one goes on from: its prompt and completion begin this prompt. */
  readonly parent: number | null
  /** Why there is no parent. */
  readonly branchReason: 'root' | 'no-match' | null
  /** Ids of the prompt behind those of the parent. */
  readonly suffixTokenIds: Int32Array<ArrayBuffer>
  readonly completionTokenIds: Int32Array<ArrayBuffer>
  /** One a completion token. */
  readonly rolloutLogprobs: Float32Array<ArrayBuffer>
  readonly messagesDelta: readonly Message[]
  readonly message: Message
  readonly finishReason: FinishReason
  readonly usage: Usage
  /** Where the server itself says which weights sampled which token. */
  readonly weightVersions: readonly WeightVersionSpan[]
  /** Fields of the request that nothing else of the turn holds. */
  readonly unusedFields?: Turn['unusedFields']
}

/** The thread's reply to a batch, in the order of the answers in it. */
export type AnswerReply =
  | { readonly call: number; readonly turn: ReadTurn }
  | { readonly call: number; readonly error: { readonly code: ErrorCode; readonly message: string } }
