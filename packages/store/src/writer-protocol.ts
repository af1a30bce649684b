import type { ErrorCode } from '@aworld-train/protocol'

export interface ThreadOptions {
  /** A run that the starting process owns. */
  readonly path: string
  readonly batchMs: number
}

export type ThreadMethod = 'open' | 'begin' | 'appendTurn' | 'finish' | 'commitStep' | 'setState' | 'serve' | 'close'

/** What the thread of a writer is asked. */
export interface ThreadCall {
  readonly id: number
  readonly method: ThreadMethod
  readonly args: readonly unknown[]
}

/** What it answers; an error without a code is not of the catalogue. */
export type ThreadReply =
  | { readonly id: number; readonly value: unknown }
  | {
      readonly id: number
      readonly error: { readonly code: ErrorCode | null; readonly message: string; readonly details?: Record<string, unknown> }
    }
