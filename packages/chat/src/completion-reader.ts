import type { TextPiece } from './token-text.ts'

/** Reads each piece of one completion once, and delivers reasoning, content and calls. */
export interface CompletionReader {
  read(piece: TextPiece): void
  /** Ends reading. `reallyStopped` says that the model itself ended its turn. */
  finish(reallyStopped: boolean): void
}
