import type { ErrorCode } from '@aworld-train/core'
import type { EncodedWrites } from './encoded-writes.ts'

export interface ThreadOptions {
  /** A run that the starting process owns. */
  readonly path: string
  readonly batchMs: number
}

export type ThreadMethod = 'open' | keyof EncodedWrites | 'close'

/** A call to the writer's thread. Calls at about the same time travel in one message, and so do replies. */
export interface ThreadCall {
  readonly id: number
  readonly method: ThreadMethod
  readonly args: readonly unknown[]
}

/** The answer of the thread. An error without a code is not of the catalogue. */
export type ThreadReply =
  | { readonly id: number; readonly value: unknown }
  | {
      readonly id: number
      readonly error: { readonly code: ErrorCode | null; readonly message: string; readonly details?: Record<string, unknown> }
    }
