import type { TextPiece } from './token-text.ts'

/** Reads the pieces of one completion, each once, and delivers reasoning, content and calls. */
export interface CompletionReader {
  read(piece: TextPiece): void
  /** Ends reading; `reallyStopped` says that the model ended its turn itself. */
  finish(reallyStopped: boolean): void
}
